#!/usr/bin/env bash
# Checks that programs linked with the last release still work with the libraries: compares the declarations of the
# public headers with tests/abi/*.abi (libabigail: `apt-get install abigail-tools`). To save time it compares libraries
# of empty functions with these declarations, which takes a second; cli/install checks that the real libraries export
# the same.
# usage: check_abi.sh            exit code 77: it cannot be checked here
#        check_abi.sh --record   for a release: records the present ABI as the one to keep
# A change that breaks the ABI raises TARN_SOVERSION in CMakeLists.txt, once between two releases; after that nothing is
# compared. Functions may be added at any time.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
skip() {
  echo "check_abi: skipped, $*"
  exit 77
}
command -v abidw >/dev/null && command -v abidiff >/dev/null || skip "libabigail (abigail-tools) is not installed"
[ "$(uname -m)" = x86_64 ] || skip "the record is of x86-64"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
soversion=$(sed -n 's/^set(TARN_SOVERSION \([0-9]*\))$/\1/p' CMakeLists.txt)

# check LIBRARY HEADER...: checks the library declared by these headers.
check() {
  local name=$1 soname=$1.so.$soversion record=tests/abi/$1.abi functions
  shift
  sed -n 's/^TARN_API .*[ *]\(tarn_[a-z0-9_]*\)(.*/\1/p' "$@" >"$work/names"
  # All declarations of the headers, those of this library with an empty body instead of the semicolon.
  printf '#include "%s"\n' "${@#include/}" | ${CC:-cc} -std=c11 -Iinclude -E -P - |
    awk -v names="$work/names" 'BEGIN { while ((getline name <names) > 0) own[name] = 1; RS = ";" }
      /__attribute__\(\(visibility\("default"\)\)\)/ {
        sub(/__attribute__\(\(warn_unused_result\)\)/, "")
        text = $0
        sub(/__attribute__\(\(visibility\("default"\)\)\)/, "", text)
        match(text, /tarn_[a-z0-9_]*\(/)
        print $0 (substr(text, RSTART, RLENGTH - 1) in own ? " { __builtin_trap(); }" : ";")
        next
      }
      /[^[:space:]]/ { print $0 ";" }' >"$work/functions.c" || return 1
  ${CC:-cc} -std=c11 -g -O0 -fPIC -shared -Wl,-soname,"$soname" "$work/functions.c" -o "$work/$soname" || return 1
  functions=$(nm -D --defined-only "$work/$soname" | grep -c ' T tarn_')
  [ "$functions" -eq "$(cat "$@" | grep -c '^TARN_API ')" ] || {
    echo "check_abi: $functions functions of $name, and not one for each TARN_API of its headers" >&2
    return 1
  }
  abidw --no-show-locs --no-comp-dir-path --no-corpus-path "$work/$soname" >"$work/now.abi" || return 1
  if [ "$mode" = --record ]; then
    mkdir -p "${record%/*}" && cp "$work/now.abi" "$record" && echo "check_abi: recorded $functions functions of $soname"
    return
  fi
  if ! grep -qs "soname='$soname'" "$record"; then
    echo "check_abi: $soname is not the ABI of the last release, which had $(sed -n "s/.*soname='\([^']*\)'.*/\1/p" "$record" 2>/dev/null || echo none)"
    return 0
  fi
  abidiff --no-added-syms "$record" "$work/now.abi" >"$work/difference.txt" 2>&1 || {
    cat "$work/difference.txt"
    echo "check_abi: programs linked with $soname of the last release would break: keep them, or raise TARN_SOVERSION" >&2
    return 1
  }
  echo "check_abi: $functions functions of $soname, none of them changed"
}

mode=${1:-}
code=0
check libtarn include/tarn/*.h || code=1
check libtarn-lab include/tarn/lab/*.h || code=1
exit $code
