#!/usr/bin/env bash
# The tasks on the device cuda, whose module is that for the host: the same training twice gives the same bits, and the
# losses of the processor up to rounding; a stopped one resumes exactly; a checkpoint moves between devices; translation,
# scores and generation find what the processor finds.
set -eu
. "$(dirname "$0")/../tiny_run.sh"
. "$(dirname "$0")/../cuda_host/cuda_here.sh"
sed -i 's/max_updates: 60/max_updates: 12/; s/save_every: 10/save_every: 6/; s/every: 20, max_sentences/every: 6, max_sentences/; s/max_tokens: 500/max_tokens: 120/; s/log_every: 5/log_every: 1/' model.yaml
CUDA=(--device cuda)

losses() { grep '"kind":"train"' "$1/log.jsonl" | grep -o '"loss":[0-9.]*' | cut -d: -f2; }
# near A B SHARE: the losses of two runs agree up to that share.
near() {
  paste -d' ' <(losses "$1") <(losses "$2") |
    awk -v most="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (d > most * $1) bad = 1; n++ } END { exit bad || n < 8 }'
}

"$TARN" train model.yaml --run cpu >/dev/null
"$TARN" train model.yaml --run card "${CUDA[@]}" >card.txt 2>card.err || fail "train: $(cat card.err)"
near cpu card 1e-4 || fail "the card learns something else: $(losses cpu) and $(losses card)"
if [ -z "${TARN_SAMPLE:-}" ]; then
  TARN_CUDA_ORDER=5 "$TARN" train model.yaml --run again "${CUDA[@]}" >/dev/null
  same_runs card again
fi

# Stopped halfway and resumed: the same bits.
"$TARN" train model.yaml --run half "${CUDA[@]}" --set train.max_updates=6 >/dev/null
"$TARN" train --resume half "${CUDA[@]}" --set train.max_updates=12 >/dev/null
cmp <(tensors_of card/checkpoint_last.safetensors) <(tensors_of half/checkpoint_last.safetensors) ||
  fail "a resumed training differs"
if [ -z "${TARN_SAMPLE:-}" ]; then
  # On the other device: near.
  "$TARN" train model.yaml --run moved --set train.max_updates=6 >/dev/null
  "$TARN" train --resume moved "${CUDA[@]}" --set train.max_updates=12 >/dev/null 2>moved.err || fail "moved: $(cat moved.err)"
  near cpu moved 1e-4 || fail "a training that moves learns something else"
  # bf16: the processor's losses up to its rounding.
  "$TARN" train model.yaml --run cpu16 --set train.precision=bf16 >/dev/null
  "$TARN" train model.yaml --run card16 "${CUDA[@]}" --set train.precision=bf16 >/dev/null 2>card.err || fail "bf16: $(cat card.err)"
  near cpu16 card16 0.01 || fail "bf16 learns something else: $(losses cpu16) and $(losses card16)"
else
  "$TARN" train model.yaml --run card16 "${CUDA[@]}" --set train.precision=bf16 --set train.max_updates=2 >/dev/null
fi

head -6 corpus/valid.de >few.de
head -6 corpus/valid.en >few.en
"$TARN" translate cpu --beam 3 <few.de >cpu.hyp
"$TARN" translate cpu --beam 3 "${CUDA[@]}" <few.de >card.hyp 2>card.err || fail "translate: $(cat card.err)"
diff cpu.hyp card.hyp || fail "translations differ"

# Exponents, in fp32; in double only on the reference.
"$TARN" dynamics cpu --input few.de --iterations 4 --exponents 2 --precision fp32 --device cpu --json >cpu.json
"$TARN" dynamics cpu --input few.de --iterations 4 --exponents 2 --precision fp32 "${CUDA[@]}" --json >card.json 2>card.err ||
  fail "dynamics: $(cat card.err)"
grep -q '"device":"cuda"' card.json || fail "dynamics on another device: $(cat card.json)"
exponents() { grep -o '"exponents":\[[^]]*' "$1" | tr -d '[' | cut -d: -f2 | tr ',' '\n'; }
paste -d' ' <(exponents cpu.json) <(exponents card.json) |
  awk '{ d = $1 - $2; if (d > 1e-3 || d < -1e-3) bad = 1; n++ } END { exit bad || n < 4 }' ||
  fail "other exponents: $(cat cpu.json card.json)"
if "$TARN" dynamics cpu --input few.de --iterations 4 "${CUDA[@]}" >/dev/null 2>card.err; then fail "double on a card"; fi
[ "$(wc -l <card.err)" -eq 1 ] && grep -q 'the device cuda does not compute in' card.err || fail "unclear: $(cat card.err)"
