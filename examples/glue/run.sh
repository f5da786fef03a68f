#!/usr/bin/env bash
# Pre-trains bodies, fine-tunes them on a task of GLUE in all the ways of glue.yaml, and writes the report.
#   run.sh TASK GLUE TEXT... -- OUTPUT      such as: run.sh sst2 corpora/glue corpora/babylm/train/*.train -- runs/glue
# TASK is sst2, cola or rte; GLUE holds SST-2, CoLA and RTE, each train.tsv and dev.tsv; TEXTs are plain text for pre-training.
# PIECES (8,000) is the size of the vocabulary, MINUTES (60) the time of each pre-training. With SMALL=1 d_model is 128 in place of 256,
# pre-training takes 2 minutes, fine-tuning an eighth of the updates, and the vocabulary has 4,000 pieces: an hour on two cores a
# task. OUTPUT/data gets vocabulary and shards, OUTPUT/body the three bodies, OUTPUT/TASK the runs, OUTPUT/report-TASK the report.
# The same command goes on where it was stopped.
set -eu
fail() { echo "run.sh: $*" >&2; exit 2; }
usage="usage: run.sh TASK GLUE TEXT... -- OUTPUT, such as run.sh sst2 corpora/glue text.txt -- runs/glue"
[ $# -ge 5 ] || fail "$usage"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
task=$1
case $task in  # folder, columns, header lines, N of "every Nth row validates", measure, updates, updates between validations
  sst2) folder=SST-2 columns=(--text sentence --labels label) head=1 held=40 metric=accuracy updates=2400 every=300 ;;
  cola) folder=CoLA columns=(--text 4 --labels 2) head=0 held=10 metric=mcc updates=1600 every=200 ;;
  rte) folder=RTE columns=(--text sentence1 --pair sentence2 --labels label) head=1 held=10 metric=accuracy updates=1600 every=200 ;;
  *) fail "there is no task $task; there are: sst2 cola rte" ;;
esac
[ -d "$2/$folder" ] || fail "$2 has no folder $folder"
glue=$(realpath "$2")
shift 2
texts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  [ -f "$1" ] || fail "$1 is no file"
  texts+=("$(realpath "$1")")
  shift
done
[ ${#texts[@]} -gt 0 ] && [ $# -eq 2 ] || fail "$usage"
pieces=${PIECES:-8000} minutes=${MINUTES:-60}
if [ "${SMALL:-}" ]; then
  pieces=${PIECES:-4000} minutes=${MINUTES:-2} updates=$((updates / 8)) every=$((every / 8))
fi
mkdir -p "$2/data"
cd "$2"
asked="$pieces pieces of ${texts[*]}${SMALL:+, small}"
[ ! -s data/ready ] || [ "$(cat data/ready)" = "$asked" ] ||
  fail "$PWD/data was made of $(cat data/ready), not of $asked; give another OUTPUT"
if [ ! -e data/ready ]; then
  cat "${texts[@]}" >data/all.txt
  "$tarn" split --every 200 --rest data/text.txt --output data/held-out.txt data/all.txt
  "$tarn" vocab --type bpe --size "$pieces" --lowercase --mask-symbols --sentences 500000 --output data/vocab.model data/text.txt
  for part in text held-out; do
    "$tarn" prepare --vocab data/vocab.model --text "data/$part.txt" --min-tokens 5 --max-tokens 127 --output "data/$part"
  done
  rm data/all.txt data/text.txt data/held-out.txt
  echo "$asked" >data/ready
fi
table() { "$tarn" prepare --vocab data/vocab.model --max-tokens 127 "${columns[@]}" --table "$2" --output "data/$task-$1" "${@:3}"; }
if [ ! -e "data/$task-dev.tarn" ]; then
  "$tarn" split --every $held --header $head --rest data/train.tsv --output data/valid.tsv "$glue/$folder/train.tsv"
  table train data/train.tsv
  table valid data/valid.tsv --labels-from "data/$task-train"
  table dev "$glue/$folder/dev.tsv" --labels-from "data/$task-train"
  rm data/train.tsv data/valid.tsv
fi
# The descriptions as they are, or half as wide; then with pre-norm, rotary positions and smaller batches at a higher learning rate, so
# that two minutes teach more than how often each piece occurs.
small='s/d_model: 256/d_model: 128\n  norm: pre/; s/positions: learned/positions: rotary/; s/hidden: 256/hidden: 128/; s/ffn: 1024/ffn: 512/
  s/max_tokens: 4096/max_tokens: 1024/; s/lr: 0.0005/lr: 0.002/; s/warmup: 1000/warmup: 100/'
width() { sed "${SMALL:+$small}" "$1"; }
width "$here/pretrain.yaml" >data/pretrain.yaml
body() {  # NAME LAYERS
  if [ -e "body/$1/config.yaml" ]; then
    "$tarn" train --resume "body/$1"
  else
    "$tarn" train data/pretrain.yaml --run "body/$1" --set "encoder.layers=$2" --set "train.max_minutes=$minutes"
  fi
}
body regular 'L*6'
body transformer 'L R L R L L'
body ffn 'L F L F L L'
mkdir -p "data/$task"
width "$here/base.yaml" >"data/$task/base.yaml"
sed "s/TASK/$task/g; s/METRIC/$metric/; s/UPDATES/$updates/; s/WARMUP/$((updates / 16))/; s/EVERY/$every/g" "$here/glue.yaml" >"data/$task/$task.yaml"
sweep=data/$task/$task.yaml
set -- "$task"
. "$here/../sweep.sh"
