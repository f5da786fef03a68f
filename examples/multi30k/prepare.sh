#!/usr/bin/env bash
# Vocabulary and shards of Multi30k in data/multi30k/ of the current folder, as the configurations here expect them.
#   examples/multi30k/prepare.sh FOLDER      FOLDER holds train.de, train.en, val.de, val.en, or the same packed, train.de.gz;
#                                            with test_2016_flickr.de and .en the test set is copied too
set -eu
[ $# -eq 1 ] || { echo "usage: prepare.sh FOLDER (with train.de, train.en, val.de, val.en, or the same as .gz)" >&2; exit 2; }
tarn=${TARN:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/tarn}
out=data/multi30k
mkdir -p $out
# take NAME OUTPUT: the text, unpacked.
take() { if [ -e "$1" ] || [ ! -e "$1.gz" ]; then cp "$1" "$2"; else gunzip -c "$1.gz" >"$2"; fi; }
for side in de en; do
  take "$1/train.$side" "$out/train.$side"
  take "$1/val.$side" "$out/valid.$side"
  # The test set of examples/experiments.
  if [ -e "$1/test_2016_flickr.$side" ] || [ -e "$1/test_2016_flickr.$side.gz" ]; then take "$1/test_2016_flickr.$side" "$out/test.$side"; fi
done
"$tarn" vocab --type bpe --size 10000 --output $out/vocab.model $out/train.de $out/train.en
for part in train valid; do
  "$tarn" prepare --vocab $out/vocab.model --source "$out/$part.de" --target "$out/$part.en" --output "$out/$part"
done
