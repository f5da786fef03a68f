#!/usr/bin/env bash
# Does freezing change the exponent of the scaling law, or only its constant? Trains five sizes on three amounts of text, regular and
# with every second layer random, and fits the laws.
#   run.sh TEXT OUTPUT [--quick] [--dry-run]
# TEXT is a file of some tens of megabytes, or one packed by xz. OUTPUT/scaling has the runs, OUTPUT/laws.txt the laws in
# parameters and tokens and OUTPUT/laws-parameters.txt those in parameters at the largest amount, each with its figure (.svg).
# 90 runs, some two hours of two cores; with --quick a quarter of the text. The same command goes on where it was stopped.
set -euo pipefail
fail() { echo "run.sh: $*" >&2; exit 2; }
usage="usage: run.sh TEXT OUTPUT [--quick] [--dry-run], such as run.sh enwik8 runs/scaling"
[ $# -ge 2 ] || fail "$usage"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
text=$1 output=$2 amounts='300 900 2700' options=()
shift 2
while [ $# -gt 0 ]; do
  case $1 in
    --quick) amounts='75 225 675' ;;
    --dry-run) options=(--dry-run) ;;
    *) fail "unknown option $1; $usage" ;;
  esac
  shift
done
[ -f "$text" ] || fail "$text is no file"
TARN=$tarn "$here/../wiki/run.sh" data "$text" "$output"
cd "$output"
{
  printf '# Made by run.sh.\nbase: %s\nbaseline: regular-128-%s\nseeds: [1, 2, 3]\nparallel: 2\nthreads: 1\nvariants:\n' "$here/base.yaml" "${amounts##* }"
  for width in 32 64 96 128 192; do
    for updates in $amounts; do
      size="model.d_model: $width, kinds.L.ffn: $((2 * width)), kinds.R.ffn: $((2 * width)), train.max_updates: $updates"
      echo "  regular-$width-$updates: { $size }"
      echo "  reservoir-$width-$updates: { $size, decoder.layers: (R L)*2 }"
    done
  done
} >scaling.yaml
code=0
"$tarn" sweep scaling.yaml --output scaling ${options[@]+"${options[@]}"} || code=$?
[ ${#options[@]} -eq 0 ] || exit $code
if [ $code -gt 1 ] || [ ! -e scaling/sweep.json ]; then
  echo "run.sh: stopped in $PWD; the same command goes on" >&2
  exit $code
fi
families() { printf -- '--family\nregular=regular-%s\n--family\nreservoir=reservoir-%s\n' "$1" "$1"; }
mapfile -t all < <(families '*')
mapfile -t most < <(families "*-${amounts##* }")
"$tarn" fit scaling "${all[@]}" --axis parameters,tokens --svg laws.svg >laws.txt
"$tarn" fit scaling "${most[@]}" --svg laws-parameters.svg >laws-parameters.txt
cat laws.txt
exit $code
