#!/usr/bin/env bash
# Prepares BabyLM for masked language models, runs masked.yaml on it and writes its report.
#   masked.sh BABYLM OUTPUT
# BABYLM holds train/*.train and dev/*.dev, plain text. PIECES (16,000) is the size of the vocabulary. Sentences are packed into
# rows of 127 tokens and <cls>. OUTPUT/data gets vocabulary and shards, OUTPUT/masked the runs, OUTPUT/report-masked the report.
# The same command goes on where it was stopped; with DRY=1 it prepares and prints the runs.
set -eu
fail() { echo "masked.sh: $*" >&2; exit 2; }
[ $# -eq 2 ] || fail "usage: masked.sh BABYLM OUTPUT, such as masked.sh babylm results"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
[ -d "$1/train" ] && [ -d "$1/dev" ] || fail "$1 has no folders train and dev"
babylm=$(realpath "$1") pieces=${PIECES:-16000} sweep=$here/masked.yaml
mkdir -p "$2/data/babylm"
cd "$2"
asked="$babylm in $pieces pieces"
[ ! -s data/masked ] || [ "$(cat data/masked)" = "$asked" ] ||
  fail "$2/data was made of $(cat data/masked), not of $asked; give another OUTPUT, or remove $2/data and $2/masked"
if [ ! -e data/masked ]; then
  "$tarn" sentences --language en --output data/train.txt "$babylm"/train/*.train
  "$tarn" sentences --language en --output data/dev.txt "$babylm"/dev/*.dev
  "$tarn" vocab --type bpe --size "$pieces" --mask-symbols --output data/babylm/mlm.vocab data/train.txt
  for part in train dev; do
    "$tarn" prepare --vocab data/babylm/mlm.vocab --text "data/$part.txt" --pack 127 --output "data/babylm/mlm-$part"
  done
  rm data/train.txt data/dev.txt
  echo "$asked" >data/masked
fi
if [ "${DRY:-}" ]; then
  exec "$tarn" sweep "$sweep" --dry-run
fi
set -- masked
. "$here/../sweep.sh"
