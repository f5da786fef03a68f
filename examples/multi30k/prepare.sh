#!/usr/bin/env bash
# Vocabulary and shards of Multi30k in data/multi30k/ of the current folder, as the configurations here expect them.
#   examples/multi30k/prepare.sh FOLDER      FOLDER holds train.de, train.en, val.de, val.en
set -eu
[ $# -eq 1 ] || { echo "usage: prepare.sh FOLDER (with train.de, train.en, val.de, val.en)" >&2; exit 2; }
tarn=${TARN:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/tarn}
mkdir -p data/multi30k
"$tarn" vocab --type bpe --size 10000 --output data/multi30k/vocab.model "$1/train.de" "$1/train.en"
"$tarn" prepare --vocab data/multi30k/vocab.model --source "$1/train.de" --target "$1/train.en" \
  --output data/multi30k/train
"$tarn" prepare --vocab data/multi30k/vocab.model --source "$1/val.de" --target "$1/val.en" --output data/multi30k/valid
cp "$1/val.en" data/multi30k/valid.en
# The test set of examples/experiments.
for side in de en; do
  [ ! -e "$1/test_2016_flickr.$side" ] || cp "$1/test_2016_flickr.$side" "data/multi30k/test.$side"
done
