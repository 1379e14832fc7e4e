#!/bin/bash
# Counts `unsafe` per module, and fails where it stands outside the modules that may have it, or without
# the reason that its file must give.
#
# usage: scripts/unsafe-count.sh
#
# Comments and texts are not counted. That each block carries a SAFETY comment is clippy's to check
# (undocumented_unsafe_blocks is denied in Cargo.toml).
set -euo pipefail
cd "$(dirname "$0")/.."

allowed='^(src/kernels|src/sys|trampoline|reproducer)(/|$)'
status=0

# FILE KIND a line: one for each use of the keyword in code.
uses() {
  git ls-files -z '*.rs' | xargs -0 awk '
    { line = $0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      sub(/\/\/.*/, "", line)
      while (match(line, /(^|[^A-Za-z0-9_])unsafe([^A-Za-z0-9_]|$)/)) {
        rest = substr(line, RSTART + RLENGTH - 1)
        kind = rest ~ /^[ ]*\{/ ? "blocks" : rest ~ /^[ ]*impl/ ? "impls" \
             : rest ~ /^\(/ ? "attributes" : rest ~ /^[ ]*extern[ ]*("[^"]*")?[ ]*\{/ ? "externs" : "functions"
        print FILENAME, kind
        line = rest
      } }'
}

module_of() { sed -E 's#^(src/[^/ ]+)/[^ ]*#\1#; s#^(trampoline|reproducer|tests|benches|examples)/[^ ]*#\1#'; }

printf '%-24s %8s %10s %8s %8s %11s\n' module blocks functions impls externs attributes
uses | module_of | sort | uniq -c | awk '
  { count[$2, $3] = $1; seen[$2] = 1 }
  END { for (m in seen) printf "%-24s %8d %10d %8d %8d %11d\n", m, count[m, "blocks"], count[m, "functions"],
        count[m, "impls"], count[m, "externs"], count[m, "attributes"] }' | sort

# Programs of their own (tests, examples, benchmarks) may call the system directly.
outside=$(uses | cut -d' ' -f1 | sort -u | grep -Ev "$allowed" | grep -Ev '^(tests|benches|examples)/' || true)
if [ -n "$outside" ]; then
  printf 'unsafe outside src/kernels, src/sys, trampoline and reproducer: move it there:\n%s\n' "$outside" >&2
  status=1
fi

# Each `allow(unsafe_code)` says why, on its line or in a comment on the line before.
unreasoned=$(git ls-files -z '*.rs' | xargs -0 awk '
  /#!?\[allow\(unsafe_code\)\]/ && !/\/\// && before !~ /^ *\/\/ / { print FILENAME ":" FNR }
  { before = $0 }')
if [ -n "$unreasoned" ]; then
  printf 'allow(unsafe_code) without a reason beside it: add one:\n%s\n' "$unreasoned" >&2
  status=1
fi
exit $status
