#!/usr/bin/env bash
# Cuts a text of 100 MB into 90 MB for training and 5 MB each for validation and test, as is done with enwik8, makes windows of
# 512 bytes of them, runs the sweep of this folder, scores the test part with a window that slides, and writes the report.
# Validation takes the first 256 kB of its part, and the test the first 500 kB of its own (environment TEST: so many bytes):
# all of them would take longer than the trainings.
#   run.sh SWEEP TEXT OUTPUT [OPTION...]
# TEXT is the file, or packed by xz. Options go to tarn sweep, such as --dry-run. OUTPUT/data gets the shards and the parts of
# the text, OUTPUT/SWEEP the runs, OUTPUT/report-SWEEP the report, OUTPUT/SWEEP-test.jsonl a line for every run with its bits
# per byte of the test part, 512 bytes at a time, each with 256 before it at least. The same command goes on where it was
# stopped. With SWEEP "data" it only prepares. A text of another size is cut in the same proportions.
set -eu
fail() { echo "run.sh: $*" >&2; exit 2; }
[ $# -ge 3 ] || fail "usage: run.sh SWEEP TEXT OUTPUT [OPTION...], such as run.sh models wiki.txt.xz results"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
case $1 in
  models) sweep=$here/$1.yaml ;;
  data) sweep= ;;
  *) fail "there is no sweep $1; there is: models" ;;
esac
[ -f "$2" ] || fail "$2 is no file"
text=$(realpath "$2") name=$1 output=$3
shift 3
mkdir -p "$output"
cd "$output"
[ ! -s data/ready ] || [ "$(cat data/ready)" = "$text" ] ||
  fail "$output/data was made of $(cat data/ready), not of $text; give another OUTPUT, or remove $output/data and the sweeps beside it"
if [ ! -e data/ready ]; then
  mkdir -p data
  "$tarn" vocab --type byte --output data/bytes.vocab
  case $text in *.xz) xz -dc "$text" ;; *) cat "$text" ;; esac >data/all.txt
  size=$(wc -c <data/all.txt)
  part=$((size / 20))
  head -c $((size - 2 * part)) data/all.txt >data/train.txt
  tail -c $((2 * part)) data/all.txt | head -c $part >data/valid.txt
  tail -c $part data/all.txt >data/test.txt
  rm data/all.txt
  for set in train valid; do
    [ $set = train ] || { head -c 262144 data/$set.txt >data/$set.part && mv data/$set.part data/$set.txt; }
    "$tarn" prepare --vocab data/bytes.vocab --text data/$set.txt --stream 512 --output data/$set
  done
  rm data/train.txt
  echo "$text" >data/ready
fi
[ "$sweep" ] || exit 0
code=0
"$tarn" sweep "$sweep" --output "$name" "$@" || code=$?
case " $* " in *" --dry-run "*) exit $code ;; esac
if [ $code -gt 1 ] || [ ! -e "$name/sweep.json" ]; then
  echo "run.sh: stopped in $PWD; the same command goes on" >&2
  exit $code
fi
head -c "${TEST:-500000}" data/test.txt >data/test.part.txt
: >"$name-test.jsonl.part"
for run in "$name"/*/seed-*; do
  [ -e "$run/result.json" ] || continue
  printf '{"run": "%s", "test": %s}\n' "$run" \
    "$("$tarn" score "$run" data/test.part.txt --window 512 --stride 256 --precision bf16 --summary-only --json 2>/dev/null)" \
    >>"$name-test.jsonl.part"
done
mv "$name-test.jsonl.part" "$name-test.jsonl"
"$tarn" report "$name" --output "report-$name"
exit $code
