#!/usr/bin/env bash
# Prints the tables of docs/scale.md, from `tarn plan --ranks` for the papers' models on this machine.
# usage: scale_tables.sh MULTI30K BABYLM [THREADS]
#   folders as made by examples/multi30k/prepare.sh and examples/babylm/run.sh: vocab.model (gpt2.vocab) and train.tarn
# Each model's update is measured here, which takes some seconds; the rest is computed from it. TARN: the program.
set -euo pipefail
cd "$(dirname "$0")/.."
tarn=${TARN:-build/release/tarn}
[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
multi30k=$1 babylm=$2 threads=${3:-2}
models=(model0 model2 model4 esn esn-i)
declare -A title=([model0]="Model0" [model2]="Model2" [model4]="Model4" [esn]="ESN" [esn-i]="ESN+i")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

plan() {  # MODEL OPTIONS...: the object `scale`
  local model=$1 data=$multi30k/train vocab=$multi30k/vocab.model file=examples/multi30k/$1.yaml
  case $model in esn*) data=$babylm/train vocab=$babylm/gpt2.vocab file=examples/babylm/$model.yaml ;; esac
  shift
  "$tarn" plan "$file" --set "data.vocab=$vocab" --set "data.train=$data" --set data.valid= --set train.reduce=bf16 \
    --threads "$threads" --json "$@" | jq -c '.scale + {trained: .trained_parameters, frozen: .frozen_parameters}'
}

echo "| model | trained | frozen | tokens an update | update of one rank alone, ms | of one of several | its optimiser |"
echo "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
for model in "${models[@]}"; do
  plan "$model" --ranks 1 >"$work/$model"
  jq -r --arg name "${title[$model]}" '"| \($name) | \(.trained) | \(.frozen) | \(.update_tokens | round) | " +
    "\(10000 * .alone_seconds | round / 10) | \(10000 * .step_seconds | round / 10) | \(10000 * .optimiser_seconds | round / 10) |"' "$work/$model"
done

for network in "1.25e9 2e-5 10 Gbit/s, 20 us" "10e9 2e-6 80 Gbit/s, 2 us"; do
  read -r bandwidth latency name <<<"$network"
  for way in whole sharded; do
    [ $way = whole ] && moments="all moments on each rank" || moments="sharded moments"
    printf '\n%s, %s: efficiency, then MB that a rank sends in an update and MB of memory that it needs\n\n' "$name" "$moments"
    printf '| ranks |'
    for model in "${models[@]}"; do printf ' %s |  |  |' "${title[$model]}"; done
    printf '\n| ---: |'
    for model in "${models[@]}"; do printf ' ---: | ---: | ---: |'; done
    printf '\n'
    for model in "${models[@]}"; do
      plan "$model" --ranks 1-1024 --bandwidth "$bandwidth" --latency "$latency" --step-seconds "$(jq .step_seconds "$work/$model")" \
        --optimiser-seconds "$(jq .optimiser_seconds "$work/$model")" --adding "$(jq .adding "$work/$model")" |
        jq -r --arg way $way '.points[] | .[$way] as $w |
          "\(1000 * $w.efficiency | round / 1000) | \($w.sent_bytes / 1e5 | round / 10) | \($w.memory_bytes / 1e6 | round) |"' >"$work/$model.rows"
    done
    paste -d' ' <(for ((n = 1; n <= 1024; n *= 2)); do echo "| $n |"; done) $(for model in "${models[@]}"; do echo "$work/$model.rows"; done)
  done
done
