#!/usr/bin/env bash
# train.fp32: refused in one line if the processor has no tiles, or no tensor cores, or nothing is computed in fp32; with tiles, a training
# resumes with the same bits, and only with its original setting.
set -eu
. "$(dirname "$0")/../helpers.sh"

"$TARN" corpus --output text --sentences 500 >/dev/null
"$TARN" vocab --type bpe --size 300 --output vocab.model text/train.de text/train.en >/dev/null
"$TARN" prepare --vocab vocab.model --source text/train.de --target text/train.en --output train >/dev/null
cat >model.yaml <<'YAML'
model: { d_model: 64 }
encoder: { layers: L }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 128 }
data: { vocab: vocab.model, train: train, valid: train }
train: { max_updates: 6, max_tokens: 512, fp32: split6, save_every: 3, log_every: 1, threads: 2, tensorboard: no }
valid: { every: 6, max_sentences: 20 }
YAML

fails() { # TEXT COMMAND...: fails, and says so in one line
  local text="$1"
  shift
  if "$@" >out.txt 2>err.txt; then fail "passes: $*"; fi
  [ "$(wc -l <err.txt)" -eq 1 ] && grep -qF "$text" err.txt || fail "$* says: $(cat err.txt)"
}

fails 'did you mean "split6"' "$TARN" plan model.yaml --set train.fp32=split5
fails 'train.precision is bf16' "$TARN" plan model.yaml --set train.precision=bf16
lacks='train.fp32: split6 needs matrix tiles (amx_tile and amx_bf16 in /proc/cpuinfo)'
export TARN_ISA=portable
fails "$lacks" "$TARN" plan model.yaml
fails "$lacks" "$TARN" train model.yaml --run none
fails 'train.fp32: tf32 needs the tensor cores of a card (the device cuda), and the device cpu computes with portable' \
  "$TARN" plan model.yaml --set train.fp32=tf32
[ ! -e none/checkpoints ] || fail "a refused training leaves checkpoints"
unset TARN_ISA

if ! "$TARN" plan model.yaml >plan.txt 2>err.txt; then
  grep -qF "$lacks" err.txt || fail "$(cat err.txt)"
  exit 0
fi
grep -q '^products of fp32 numbers by split6$' plan.txt || fail "the plan does not name split6"
"$TARN" plan model.yaml --json | grep -q '"precision":"fp32","fp32":"split6"' || fail "no split6 in the plan's JSON"

"$TARN" train model.yaml --run whole >log.txt
grep -q 'fp32 by split6' log.txt || fail "the head of a training does not name split6"
"$TARN" train model.yaml --run parts --set train.max_updates=3 >/dev/null
fails 'train.fp32 cannot change' "$TARN" train --resume parts --set train.fp32=exact
TARN_ISA=avx512_bf16 fails "$lacks" "$TARN" train --resume parts --set train.max_updates=6
"$TARN" train --resume parts --set train.max_updates=6 >/dev/null
scores() { grep -o '"kind":"valid".*' "$1/log.jsonl" | tail -n 1 | grep -o '"valid_\(loss\|bleu\)":[-0-9.e]*'; }
[ -n "$(scores whole)" ] && [ "$(scores whole)" = "$(scores parts)" ] || fail "resuming changes bits"
"$TARN" train model.yaml --run exact --set train.fp32=exact >/dev/null
norms() { grep -o '"grad_norm":[-0-9.e]*' "$1/log.jsonl"; }
[ -n "$(norms exact)" ] && [ "$(norms exact)" != "$(norms whole)" ] || fail "split6 computes what exact does"
# A model trained with split products runs on any processor.
head -n 2 text/train.de | TARN_ISA=portable "$TARN" translate whole >/dev/null || fail "a model of split6 cannot be used"
