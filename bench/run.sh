#!/usr/bin/env bash
# Measures tarn, in turns (A B A B ...) with PyTorch where it is installed, on Multi30k: training speed and peak memory of
# the models of the papers. Prints medians and ratios.
#   bench/run.sh [--only NAME] [--rounds N] [--updates N] [--json]
#   --only NAME    train-model0-fp32, train-model0-bf16, train-model2-fp32, train-model2-bf16, train-small-fp32,
#                  train-small-bf16, freezing (default: all)
#   --rounds N     turns (default 3)
#   --updates N    updates of each run, the first 3 not counted (default 15)
#   --json         print JSON only
# Environment: TARN (the program), TARN_DATA (folder that holds multi30k/), TARN_PEERS (folder of torch_mt.py), PYTHON (a
# Python with PyTorch), TCMALLOC (a library that the peer runs faster with), THREADS (default 2).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/bench/turns.sh"

rounds=3
updates=15
only=""
json=no
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --updates) updates=$2; shift 2 ;;
    --json) json=yes; shift ;;
    --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "bench: unknown option $1 (see bench/run.sh --help)" >&2; exit 2 ;;
  esac
done
command -v jq >/dev/null || { echo "bench: jq is not installed: apt-get install jq" >&2; exit 1; }
[ -x "$TARN" ] || { echo "bench: $TARN is not there: ./run build" >&2; exit 1; }
[ -f "$TARN_DATA/multi30k/train.de" ] || { echo "bench: $TARN_DATA/multi30k is not there: set TARN_DATA" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prepare_data "$work"

results=$work/results.jsonl
: >"$results"
# name, configuration of tarn, precision, options of the peer
measure() {
  [ -z "$only" ] || [ "$only" = "$1" ] || return 0
  [ "$json" = yes ] || echo "$1 ..." >&2
  take_turns "$work" "$rounds" "$updates" "$@" >>"$results"
}
for precision in fp32 bf16; do
  measure "train-model0-$precision" "$root/examples/multi30k/model0.yaml" "$precision" --enc-layers 8 --dec-layers 2 \
    --share-all
  measure "train-model2-$precision" "$root/examples/multi30k/model2.yaml" "$precision" --enc-layers 8 --dec-layers 2 \
    --freeze-enc 0,2,4,6 --share-all
  measure "train-small-$precision" "$root/bench/small.yaml" "$precision" --enc-layers 3 --dec-layers 3 --d 256 --ffn 512 \
    --share-all
done
if [ -z "$only" ] || [ "$only" = freezing ]; then
  [ "$json" = yes ] || echo "freezing ..." >&2
  compare_freezing "$work" "$rounds" "$updates" "$root" >>"$results"
fi
if [ ! -s "$results" ]; then
  echo "bench: there is no measurement \"$only\" (see bench/run.sh --help)" >&2
  exit 2
fi

if [ "$json" = yes ]; then
  jq -s . "$results"
else
  print_table "$results"
fi
