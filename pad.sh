#!/bin/sh
# Executes a command under an environment whose only variable is PAD, N bytes long.
#
#   ./pad.sh N COMMAND [ARGUMENT...]
#
# The kernel copies the environment to the top of the stack, so N more bytes of it place the stack N
# bytes lower, in steps of 16; the heap stays where it is. That holds from run to run without
# address-space randomisation only, on one core, and undisturbed:
#
#   sudo chrt -f 99 taskset -c 8 setarch -R ./pad.sh 64 ./bench-hashes
#
# `stackphase pad -- COMMAND` does the whole sweep and judges it.

usage() {
    echo "pad.sh: $1" >&2
    echo "usage: pad.sh N COMMAND [ARGUMENT...]    N: bytes of padding, 0 to $most" >&2
    exit 2
}

# The kernel takes no longer string: 32 pages of 4096 bytes, with `PAD=` and the terminator.
most=131067

[ $# -ge 1 ] || usage 'no length'
case $1 in
'' | *[!0-9]*) usage "not a length: $1" ;;
esac
bytes=$1
# printf would take a leading zero for a flag.
while [ "${bytes#0}" != "$bytes" ] && [ "$bytes" != 0 ]; do bytes=${bytes#0}; done
[ ${#bytes} -le ${#most} ] && [ "$bytes" -le $most ] || usage "longer than a variable may be: $1"
shift
[ $# -ge 1 ] || usage 'no command'
case $1 in
'') usage 'no command' ;;
*=*) usage "env would take this for a variable, so name the command by another path: $1" ;;
esac

# Found now: under the empty environment there is no PATH.
found=$(command -v -- "$1") || found=
case $found in
/*)
    shift
    set -- "$found" "$@"
    ;;
esac

pad=$(printf "%${bytes}s" '' | tr ' ' x)
exec env -i "PAD=$pad" "$@"
