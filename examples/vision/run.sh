#!/usr/bin/env bash
# Draws digits, trains a vision transformer on them and tests it; then the same for a model whose middle layers are random
# (docs/vision.md).
# usage: examples/vision/run.sh [OUTPUT [OPTION OF tarn train]...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-runs/vision}
[ $# -eq 0 ] || shift

tarn draw --output "$out/drawn" --images 40000
for part in train valid test; do
  tarn prepare --images "$out/drawn/$part-images.idx" --labels "$out/drawn/$part-labels.idx" --output "$out/$part"
done
data=(--set data.train="$out/train" --set data.valid="$out/valid")
tarn train "$here/vit.yaml" --run "$out/vit" "${data[@]}" "$@"
tarn train "$here/vit.yaml" --run "$out/reservoir" "${data[@]}" --set 'encoder.layers=L R*2 L' "$@"
for run in vit reservoir; do
  echo "$run:"
  tarn test "$out/$run" --labelled "$out/test"
done
