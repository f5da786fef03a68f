# shellcheck shell=bash
# Sourced by the checks: our own C and C++ files, tracked or new, one per line, relative to the root of the project.
sources() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- "$@"
  else
    find "$@" -type f 2>/dev/null
  fi | grep -E '\.(c|cc|cu|h)$' | while read -r file; do [ -f "$file" ] && echo "$file"; done | sort -u
}
