#!/bin/bash
# Proves that the reproducer and the reduced program are byte-for-byte reproducible: each is built
# twice, in folders of different names and depths, and the files compared.
#
# usage: scripts/reproducible.sh [TARGET]      (cargo's target triple; default: the host's)
#
# The reduced program is built against the blake3 crate alone, which also proves that it needs no
# more. CARGO may name another cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cargo=${CARGO:-cargo}
host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
blake3=$(sed -n 's/^blake3 = "=\(.*\)"$/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# project DIR: a workspace of the two programs and nothing else, with the versions of our lock file.
project() {
  mkdir -p "$1/reproducer" "$1/reduced/src"
  cp -R reproducer/src reproducer/Cargo.toml "$1/reproducer/"
  cp examples/reduced.rs "$1/reduced/src/main.rs"
  cp Cargo.lock "$1/"
  printf '[package]\nname = "reduced"\nversion = "0.1.0"\nedition = "2024"\n[dependencies]\nblake3 = "=%s"\n' \
    "$blake3" > "$1/reduced/Cargo.toml"
  {
    printf '[workspace]\nmembers = ["reproducer", "reduced"]\nresolver = "2"\n'
    sed -n '/^\[workspace\.package\]/,/^$/p; /^\[workspace\.lints/,/^$/p; /^\[profile\.release\]/,/^$/p' Cargo.toml
  } > "$1/Cargo.toml"
}

# build DIR: paths are mapped away, so that neither debug information nor panic messages hold them.
build() (
  cd "$1"
  export RUSTFLAGS="--remap-path-prefix=$1=/stackphase --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  export CFLAGS="-ffile-prefix-map=$1=/stackphase"
  "$cargo" build --quiet --release --target "$target" --target-dir "$1/target"
)

first=$work/one second=$work/another/folder/deeper
status=0
for folder in "$first" "$second"; do
  project "$folder"
  build "$folder"
done
for program in reproducer reduced; do
  a=$first/target/$target/release/$program b=$second/target/$target/release/$program
  if cmp "$a" "$b"; then
    echo "$program: the same file twice, $(sha256sum < "$a" | cut -d' ' -f1), $(wc -c < "$a") bytes"
  else
    echo "$program: built differently in $first and $second" >&2
    status=1
  fi
  if grep -aqF -e "$work" -e "$root" "$a"; then
    echo "$program: holds the path of the folder that it was built in" >&2
    status=1
  fi
done
exit $status
