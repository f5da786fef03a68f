#!/usr/bin/env bash
# Prepares BabyLM for masked language models, runs masked.yaml on it, or masked-small.yaml, and writes its report.
#   masked.sh BABYLM OUTPUT [SWEEP]
# BABYLM holds train/*.train and dev/*.dev, plain text; SWEEP is "masked" (default) or "masked-small". PIECES (16,000, small 4,000)
# is the size of the vocabulary. Sentences are packed into rows of 127 tokens and <cls>. The small sweep is validated on every
# 40th block of 200 sentences. OUTPUT/data gets vocabulary and shards, OUTPUT/SWEEP the runs, OUTPUT/report-SWEEP the report.
# The same command goes on where it was stopped; with DRY=1 it prepares and prints the runs.
set -eu
fail() { echo "masked.sh: $*" >&2; exit 2; }
[ $# -eq 2 ] || [ $# -eq 3 ] || fail "usage: masked.sh BABYLM OUTPUT [SWEEP], such as masked.sh babylm runs masked-small"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
[ -d "$1/train" ] && [ -d "$1/dev" ] || fail "$1 has no folders train and dev"
name=${3:-masked}
case $name in
  masked) pieces=${PIECES:-16000} set=mlm share=1 ;;
  masked-small) pieces=${PIECES:-4000} set=mlm-small share=40 ;;
  *) fail "there is no sweep $name; there are: masked masked-small" ;;
esac
babylm=$(realpath "$1") sweep=$here/$name.yaml
mkdir -p "$2/data/babylm"
cd "$2"
asked="$babylm in $pieces pieces" ready=data/$name.ready
[ ! -s "$ready" ] || [ "$(cat "$ready")" = "$asked" ] ||
  fail "$2/data was made of $(cat "$ready"), not of $asked; give another OUTPUT, or remove $2/data and $2/$name"
if [ ! -e "$ready" ]; then
  "$tarn" sentences --language en --documents --output data/train.txt "$babylm"/train/*.train
  "$tarn" sentences --language en --documents --output data/all.txt "$babylm"/dev/*.dev
  awk -v n=$share 'int((NR - 1) / 200) % n == 0' data/all.txt >data/dev.txt
  "$tarn" vocab --type bpe --size "$pieces" --mask-symbols --sentences 500000 --output data/babylm/$set.vocab data/train.txt
  for part in train dev; do
    "$tarn" prepare --vocab data/babylm/$set.vocab --text "data/$part.txt" --pack 127 --output "data/babylm/$set-$part"
  done
  rm data/train.txt data/dev.txt data/all.txt
  echo "$asked" >"$ready"
fi
options=()
[ ! "${DRY:-}" ] || options=(--dry-run)
set -- "$name"
. "$here/../sweep.sh"
