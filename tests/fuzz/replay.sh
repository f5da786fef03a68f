#!/usr/bin/env bash
# Gives a target its seeds and every input that ever failed it. usage: replay.sh PROGRAM TARGET
set -u
here=$(cd "$(dirname "$0")" && pwd)
places=()
for folder in "$here/corpus/$2" "$here/regressions/$2"; do [ -d "$folder" ] && places+=("$folder"); done
[ "$2" != checkpoint ] || places+=("$here"/../versions/*/models/*.safetensors)
# Single files, because libFuzzer, which some builds of a target have, would start to fuzz from a folder.
[ ${#places[@]} -gt 0 ] || { echo "replay: there is no folder of inputs of $2" >&2; exit 1; }
mapfile -t inputs < <(find "${places[@]}" -type f ! -name '.*' | sort)
[ ${#inputs[@]} -gt 0 ] || { echo "replay: there is no input of $2" >&2; exit 1; }
# libFuzzer brings the C++ library, which is then before the run-time of the sanitizer: that matters to no reader.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
exec timeout 300 "$1" "${inputs[@]}"
