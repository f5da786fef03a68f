#!/usr/bin/env bash
# From nothing to BLEU: makes a German-English corpus, trains Model0 (all layers trained) and Model3 (half of the encoder
# random, frozen and shared) on it, compares them and shows some translations.
# usage: demo.sh [FOLDER]   everything is written there; default build/demo, which is emptied first
# DEMO_MINUTES is the training time of each model (default 1), TARN the program.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
minutes=${DEMO_MINUTES:-1}
folder=${1:-$root/build/demo}
models="model0 model3"

if [ $# -eq 0 ]; then
  rm -rf "$folder"
elif [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then
  echo "demo: $folder is not empty" >&2
  exit 2
fi
mkdir -p "$folder"
cd "$folder"

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || step() { printf '\n%s\n' "$*"; }

step "1. A corpus from a grammar"
"$tarn" corpus --output text
step "2. A joint vocabulary, and shards"
"$tarn" vocab --type bpe --size 1000 --output vocab.model text/train.de text/train.en
for split in train valid; do
  "$tarn" prepare --vocab vocab.model --source "text/$split.de" --target "text/$split.en" --output "$split"
done

step "3. Training, $minutes minute(s) each"
for model in $models; do
  echo "$model"
  "$tarn" train "$root/examples/demo/$model.yaml" --run "$model" --set data.vocab=vocab.model --set data.train=train \
    --set data.valid=valid --set "train.max_minutes=$minutes"
done

step "4. The test set, translated by each"
for model in $models; do
  "$tarn" translate "$model" <text/test.de >"$model.en"
  "$tarn" bleu --reference text/test.en --json <"$model.en" >"$model.bleu.json"
  "$tarn" inspect "$model" --json >"$model.json"
done

line='%-8s %12s %12s %12s %14s %10s %7s\n'
# shellcheck disable=SC2059
printf "$line" model trained frozen total "checkpoint B" tokens/s BLEU
for model in $models; do
  figures=$(jq -r '[.trained, .frozen, .trained + .frozen, .bytes.file] | @tsv' "$model.json")
  read -r trained frozen total bytes <<<"$figures"
  speed=$(jq -rs '[.[].tokens_per_second | numbers] | add / length | round' "$model/log.jsonl")
  bleu=$(jq -r '.score * 100 | round / 100' "$model.bleu.json")
  # shellcheck disable=SC2059
  printf "$line" "$model" "$trained" "$frozen" "$total" "$bytes" "$speed" "$bleu"
done

step "5. Some of it"
count=$(wc -l <text/test.de)
for sample in 1 2 3 4 5; do
  number=$((sample * count / 6 + 1))
  printf '%-10s %s\n' German "$(sed -n "${number}p" text/test.de)" reference "$(sed -n "${number}p" text/test.en)"
  for model in $models; do printf '%-10s %s\n' "$model" "$(sed -n "${number}p" "$model.en")"; done
  echo
done
echo "everything is in $folder"
