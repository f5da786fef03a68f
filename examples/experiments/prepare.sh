#!/usr/bin/env bash
# Vocabulary (4,000 pieces for both sides) and shards of a German-English corpus in data/NAME/ of the current folder, as the
# sweeps here expect them.
#   examples/experiments/prepare.sh NAME FOLDER      FOLDER holds train, val or valid, and test or test_2016_flickr, .de and .en
set -eu
[ $# -eq 2 ] || { echo "usage: prepare.sh NAME FOLDER, such as prepare.sh multi30k corpora/multi30k" >&2; exit 2; }
tarn=${TARN:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/tarn}
out=data/$1 from=$2
first() {  # NAME...: the first of these that FOLDER holds
  for name in "$@"; do [ ! -e "$from/$name.de" ] || { echo "$from/$name"; return; }; done
  echo "prepare.sh: $from holds none of: $*" >&2
  exit 1
}
train=$(first train) valid=$(first valid val) test=$(first test test_2016_flickr)
mkdir -p "$out"
"$tarn" vocab --type bpe --size 4000 --output "$out/vocab.model" "$train.de" "$train.en"
"$tarn" prepare --vocab "$out/vocab.model" --source "$train.de" --target "$train.en" --output "$out/train"
"$tarn" prepare --vocab "$out/vocab.model" --source "$valid.de" --target "$valid.en" --output "$out/valid"
cp "$valid.en" "$out/valid.en"
cp "$test.de" "$out/test.de"
cp "$test.en" "$out/test.en"
