#!/usr/bin/env bash
# What tarn plan --device cuda says against what a training allocates, within 5 %: with the library's room for products,
# for the training and for each decoder of a validation. The card is the module for the host, whose allocations are those
# of a card but for the library's own.
set -eu
. "$(dirname "$0")/../tiny_run.sh"
. "$(dirname "$0")/../cuda_host/cuda_here.sh"
command -v jq >/dev/null || { echo "no jq"; exit 77; }
# Sentences of one length, so that the assumed batch is one that comes.
for side in de en; do
  for part in train valid; do
    awk 'NF >= 6 && ++n <= 24 { print $1, $2, $3, $4, $5, $6 }' corpus/$part.$side corpus/train.$side | head -n 24 >$part.$side
  done
done
for part in train valid; do "$TARN" prepare --vocab vocab --source $part.de --target $part.en --output $part >/dev/null; done

# within KEY=VALUE...: the plan and the training of a description.
within() {
  local keys=() planned taken
  for key in "$@"; do keys+=(--set "$key"); done
  rm -rf run taken.txt
  "$TARN" plan model.yaml --device cuda --json "${keys[@]}" >plan.json
  planned=$(jq '.total_bytes - .program_bytes' plan.json)
  TARN_CUDA_MEMORY=taken.txt "$TARN" train model.yaml --run run --device cuda "${keys[@]}" >/dev/null 2>error.txt ||
    fail "train $*: $(cat error.txt)"
  taken=$(cat taken.txt)
  echo "$*: planned $planned, allocated $taken"
  [ $((planned * 20)) -gt $((taken * 19)) ] && [ $((planned * 20)) -lt $((taken * 21)) ] ||
    fail "$*: $taken bytes allocated, $planned planned: $(jq -c 'del(.parts)' plan.json)"
}
small=(train.max_updates=2 train.log_every=1 train.save_every=2 train.average=0 train.threads=2 valid.every=0 valid.bleu=no)
within "${small[@]}" train.max_tokens=84
[ -n "${TARN_SAMPLE:-}" ] ||
  within "${small[@]}" train.max_tokens=84 model.d_model=192 "kinds.L={ mixer: attention, heads: 4, ffn: 768 }"
within "${small[@]}" train.max_tokens=84 train.precision=bf16 model.d_model=192 \
  "kinds.R={ mixer: attention, heads: 4, ffn: 768, frozen: yes }" train.clip_norm=1
[ -n "${TARN_SAMPLE:-}" ] || within "${small[@]}" train.max_tokens=84 valid.every=2 valid.bleu=yes valid.max_sentences=4
within "${small[@]}" train.max_tokens=84 valid.every=2 valid.bleu=yes valid.max_sentences=16 model.max_length=12
