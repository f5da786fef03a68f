#!/usr/bin/env bash
# Checks that the library still fits programs that were linked with the last release: compares what the public headers
# declare with tests/abi/libtarn.abi (libabigail: `apt-get install abigail-tools`). What is compared is a library of empty
# functions with those declarations, which takes a second; cli/install checks that the real one exports the same.
# usage: check_abi.sh            exit code 77: it cannot be checked here
#        check_abi.sh --record   for a release: the ABI as it is now becomes the one to keep
# A change that breaks it raises TARN_SOVERSION in CMakeLists.txt, once until the next release; from then on nothing is
# compared. Functions may be added at any time.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
record=tests/abi/libtarn.abi
skip() {
  echo "check_abi: skipped, $*"
  exit 77
}
command -v abidw >/dev/null && command -v abidiff >/dev/null || skip "libabigail (abigail-tools) is not installed"
[ "$(uname -m)" = x86_64 ] || skip "the record is of x86-64"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
soname=libtarn.so.$(sed -n 's/^set(TARN_SOVERSION \([0-9]*\))$/\1/p' CMakeLists.txt)

# Every declaration of the headers, with an empty body in place of its semicolon.
for header in include/tarn/*.h; do echo "#include \"tarn/${header##*/}\""; done | ${CC:-cc} -std=c11 -Iinclude -E -P - |
  awk 'BEGIN { RS = ";" }
    /__attribute__\(\(visibility\("default"\)\)\)/ {
      sub(/__attribute__\(\(warn_unused_result\)\)/, "")
      print $0 " { __builtin_trap(); }"
      next
    }
    /[^[:space:]]/ { print $0 ";" }' >"$work/functions.c" || exit 1
${CC:-cc} -std=c11 -g -O0 -fPIC -shared -Wl,-soname,"$soname" "$work/functions.c" -o "$work/$soname" || exit 1
functions=$(nm -D --defined-only "$work/$soname" | grep -c ' T tarn_')
[ "$functions" -eq "$(cat include/tarn/*.h | grep -c '^TARN_API ')" ] || {
  echo "check_abi: $functions functions, and not one for each TARN_API of include/tarn" >&2
  exit 1
}
abidw --no-show-locs --no-comp-dir-path --no-corpus-path "$work/$soname" >"$work/now.abi" || exit 1
if [ "${1:-}" = --record ]; then
  mkdir -p "${record%/*}" && cp "$work/now.abi" "$record" && echo "check_abi: recorded $functions functions of $soname"
  exit
fi
if ! grep -q "soname='$soname'" "$record"; then
  echo "check_abi: $soname is not the ABI of the last release, which had $(sed -n "s/.*soname='\([^']*\)'.*/\1/p" "$record")"
  exit 0
fi
code=0
abidiff --no-added-syms "$record" "$work/now.abi" >"$work/difference.txt" 2>&1 || code=$?
[ $code -eq 0 ] || {
  cat "$work/difference.txt"
  echo "check_abi: programs linked with $soname of the last release would break: keep them, or raise TARN_SOVERSION" >&2
  exit 1
}
echo "check_abi: $functions functions, none of them changed"
