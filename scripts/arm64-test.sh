#!/bin/bash
# Builds the workspace for aarch64 Linux and runs its tests under qemu's user emulation.
#
# usage: scripts/arm64-test.sh [CARGO TEST ARGUMENTS]     (default: --workspace)
#
# The compiler, the cross linker and the emulator come from Debian packages (scripts/arm64-env.sh), into
# ARM64_ENV or target/arm64-env; what is built goes to target/arm64. Nothing is installed.
#
# Tests that start arm64 programs need them to be executable: where the kernel lets an ordinary user
# register an emulator for a namespace of its own (Linux 6.7 and later, user namespaces allowed), the tests
# run in such a namespace. Elsewhere those tests fail or skip, and the first line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'arm64-test: %s\n' "$*" >&2; }

kit=$(realpath -m "${ARM64_ENV:-target/arm64-env}")
scripts/arm64-env.sh "$kit" >&2
# shellcheck disable=SC1091
. "$kit/env.sh"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/arm64}
arguments=("$@")
[ $# -gt 0 ] || arguments=(--workspace)

command=(cargo test --locked --target aarch64-unknown-linux-gnu "${arguments[@]}")
if "$kit/bin/with-binfmt" true 2>/dev/null; then
  # Workers start with an environment of our making, in which the emulator is not told where arm64's
  # loader and libraries lie: in that namespace they lie in /usr/lib, beside the machine's own.
  # shellcheck disable=SC2016
  command=("$kit/bin/with-binfmt" sh -c
    'mount -t overlay overlay -o "lowerdir=$1:/usr/lib" /usr/lib && shift && exec "$@"'
    sh "$kit/cross/usr/aarch64-linux-gnu/lib" "${command[@]}")
else
  say "no namespace with an emulator of its own here (Linux 6.7 and user namespaces have one): tests that start arm64 programs will not find them"
fi
say "${command[*]}"
exec "${command[@]}"
