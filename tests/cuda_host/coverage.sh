#!/bin/bash
# Fails if a kernel of the module was run by no test: coverage.sh MODULE FOLDER, where the tests left one file each.
set -euo pipefail
module=$1 folder=$2
trap 'rm -f "$folder"/*.ran' EXIT  # of this build
ran=$(cat "$folder"/*.ran | sort -u)
# Addresses as the tests write them, and names; a kernel's name ends in _kernel, before template and other arguments.
nm -C --defined-only "$module" | sed -n 's/^0*\([0-9a-f]*\) [tTwWu] \(.*\)$/\1 \2/p' | grep -v 'clone' | grep -E '_kernel(<.*>)?\(' | sort >"$folder/kernels"
[ -s "$folder/kernels" ] || { echo "$module has no kernels" >&2; exit 1; }
missing=$(while read -r address name; do
  grep -qx "$address" <<<"$ran" || echo "  ${name%%(*}" | sed 's/^  void /  /'
done < <(sed 's/(tarn__cell)//g' "$folder/kernels") | sort)
if [ -n "$missing" ]; then
  printf 'kernels that no test has run:\n%s\n' "$missing" >&2
  exit 1
fi
echo "all $(wc -l <"$folder/kernels") kernels were run"
