#!/usr/bin/env bash
# Gives a target its seeds and every input that ever failed it. usage: replay.sh PROGRAM TARGET
set -u
here=$(cd "$(dirname "$0")" && pwd)
inputs=()
for folder in "$here/corpus/$2" "$here/regressions/$2"; do [ -d "$folder" ] && inputs+=("$folder"); done
[ "$2" != checkpoint ] || inputs+=("$here"/../versions/*/models/*.safetensors)
exec timeout 300 "$1" "${inputs[@]}"
