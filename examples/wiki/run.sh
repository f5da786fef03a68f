#!/usr/bin/env bash
# Cuts a text of 100 MB into 90 MB for training and 5 MB each for validation and test, as is done with enwik8, makes windows of
# bytes of them, runs a sweep of this folder, which tests each model with a window that slides, and writes the report.
#   run.sh SWEEP TEXT OUTPUT [OPTION...]
# SWEEP is "models", with windows of 512 bytes, or "small", with windows of 256, which takes an hour on two cores. Of the
# parts for validation and test only the first 256 kB and 500 kB are used (small: 64 kB each); the whole would take longer
# than the trainings. TEXT is the file, or the file packed by xz. Options go to tarn sweep, such as --dry-run. OUTPUT/data
# gets the shards and the text of the test, OUTPUT/SWEEP the runs, OUTPUT/report-SWEEP the report. The same command goes on
# where it was stopped. With SWEEP "data" it only prepares for "models". A text of another size is cut in the same
# proportions.
set -eu
fail() { echo "run.sh: $*" >&2; exit 2; }
[ $# -ge 3 ] || fail "usage: run.sh SWEEP TEXT OUTPUT [OPTION...], such as run.sh models wiki.txt.xz runs"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
case $1 in
  models | data) window=512 mark='' valid=262144 test=500000 ;;
  small) window=256 mark=-256 valid=65536 test=65536 ;;
  *) fail "there is no sweep $1; there are: models small" ;;
esac
[ -f "$2" ] || fail "$2 is no file"
text=$(realpath "$2") name=$1 output=$3
shift 3
options=("$@")
mkdir -p "$output/data"
cd "$output"
ready=data/ready$mark
[ ! -s "$ready" ] || [ "$(cat "$ready")" = "$text" ] ||
  fail "$output/data was made of $(cat "$ready"), not of $text; give another OUTPUT, or remove $output/data and the sweeps beside it"
if [ ! -e "$ready" ]; then
  "$tarn" vocab --type byte --output data/bytes.vocab
  case $text in *.xz) xz -dc "$text" ;; *) cat "$text" ;; esac >data/all.part
  size=$(wc -c <data/all.part)
  part=$((size / 20))
  [ $part -gt 0 ] || fail "$text is too short to be cut into three"
  take() { "$tarn" split --quiet --from "$1" --bytes "$2" --output "$3" data/all.part; }
  take 0 $((size - 2 * part)) data/train.part
  take $((size - 2 * part)) $((part < valid ? part : valid)) data/valid.part
  take $((size - part)) $((part < test ? part : test)) "data/test$mark.txt"
  rm data/all.part
  for set in train valid; do
    "$tarn" prepare --vocab data/bytes.vocab --text data/$set.part --stream $window --output data/$set$mark
    rm data/$set.part
  done
  echo "$text" >"$ready"
fi
[ "$name" != data ] || exit 0
sweep=$here/$name.yaml
set -- "$name"
. "$here/../sweep.sh"
