#!/usr/bin/env bash
# Prepares a parallel corpus, runs one of the sweeps of this folder on it and writes its report.
#   run.sh SWEEP CORPUS OUTPUT [SOURCE TARGET]      such as: run.sh models corpora/multi30k runs/multi30k de en
# CORPUS holds train, val (or valid or dev), and test (or test_2016_flickr), each .SOURCE and .TARGET (default de and en).
# OUTPUT/data gets the vocabulary (PIECES, default 4,000, for both sides) and the shards, OUTPUT/SWEEP the runs, OUTPUT/report-SWEEP
# the report. The same command goes on where it was stopped. With SWEEP "data" it only prepares.
set -eu
fail() { echo "run.sh: $*" >&2; exit 2; }
[ $# -eq 3 ] || [ $# -eq 5 ] || fail "usage: run.sh SWEEP CORPUS OUTPUT [SOURCE TARGET], such as run.sh models corpora/multi30k runs"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
sweep=$here/$1.yaml source=${4:-de} target=${5:-en}
[ "$1" = data ] || [ -f "$sweep" ] || fail "there is no sweep $1; there are: $(cd "$here" && ls -- *.yaml | grep -v base | sed 's/.yaml//' | tr '\n' ' ')"
[ -d "$2" ] || fail "$2 is no folder"
from=$(cd "$2" && pwd)
first() {  # NAME...: the first of these that the corpus has in both languages
  for name in "$@"; do [ ! -e "$from/$name.$source" ] || [ ! -e "$from/$name.$target" ] || { echo "$from/$name"; return; }; done
  fail "$from holds none of these in both $source and $target: $*"
}
train=$(first train)
valid=$(first val valid dev)
test=$(first test test_2016_flickr)
mkdir -p "$3"
cd "$3"
asked="$from from $source to $target with ${PIECES:-4000} pieces"
[ ! -s data/ready ] || [ "$(cat data/ready)" = "$asked" ] ||
  fail "$3/data was made of $(cat data/ready), not of $asked; give another OUTPUT, or remove $3/data and the sweeps beside it"
if [ ! -e data/ready ]; then
  mkdir -p data
  "$tarn" vocab --type bpe --size "${PIECES:-4000}" --output data/vocab.model "$train.$source" "$train.$target"
  "$tarn" prepare --vocab data/vocab.model --source "$train.$source" --target "$train.$target" --output data/train
  "$tarn" prepare --vocab data/vocab.model --source "$valid.$source" --target "$valid.$target" --output data/valid
  cat "$valid.$target" >data/valid.reference
  cat "$test.$source" >data/test.source
  cat "$test.$target" >data/test.reference
  echo "$asked" >data/ready
fi
[ "$1" != data ] || exit 0
. "$here/../sweep.sh"
