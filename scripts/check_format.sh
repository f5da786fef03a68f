#!/usr/bin/env bash
# Checks the formatting of all sources against .clang-format; with --fix, formats them in place.
# Versions of clang-format differ in details, so the version is fixed.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh
version=14

tool=""
for candidate in "clang-format-$version" clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q "version $version\."; then
    tool=$candidate
    break
  fi
done
if [ -z "$tool" ]; then
  echo "check_format: skipped, clang-format $version is not installed"
  exit 77
fi

mapfile -t files < <(sources include src tools tests bench examples)
if [ "${1:-}" = --fix ]; then
  "$tool" -i "${files[@]}" && echo "check_format: ${#files[@]} files formatted"
  exit
fi
if ! "$tool" --dry-run -Werror "${files[@]}"; then
  echo "check_format: run ./run format"
  exit 1
fi
echo "check_format: ${#files[@]} files are in order"
