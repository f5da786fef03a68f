#!/usr/bin/env bash
# The plan against the machine: the resident set of a training grows by the planned amount, and the plan's numbers match
# the arithmetic of the models.
set -eu
. "$(dirname "$0")/../helpers.sh"
number() { grep -o "\"$1\": *[0-9.]*" "$2" | head -n 1 | sed "s/.*: *//"; }

"$TARN" corpus --output text --sentences 2000 >/dev/null
"$TARN" vocab --type bpe --size 1000 --output vocab.model text/train.de text/train.en >/dev/null
"$TARN" prepare --vocab vocab.model --source text/train.de --target text/train.en --output train >/dev/null

cat >model.yaml <<'YAML'
model: { d_model: 512, embeddings: all }
encoder: { layers: "(R L)*4" }
decoder: { layers: L*2 }
kinds:
  L: { mixer: attention, heads: 4, ffn: 1024 }
  R: { mixer: attention, heads: 4, ffn: 1024, frozen: yes }
data: { vocab: vocab.model, train: train }
train: { max_updates: 3, max_tokens: 4096 }
YAML

# The output layer computes its gradients in the forward node; they still count as backward.
"$TARN" plan model.yaml --vocab-size 1000 --set 'train.max_tokens=512' | grep -Eq '^output .* 0\.51 +1\.02 +0\.00$' ||
  fail "the output layer's operations are not 2 d V / 2 forward and twice that backward"

# A limit of sentences has the same effect on the plan as on the training.
for limit in "" --set=train.max_sentences=2; do
  "$TARN" plan model.yaml --json $limit >plan.json
  "$TARN" train model.yaml --run limited --dry-run --json $limit >dry.json || fail "--dry-run"
  awk -v a="$(number total_bytes plan.json)" -v b="$(number total_bytes dry.json)" 'BEGIN { exit !(a > 0.8 * b && a < 1.25 * b) }' ||
    fail "plan and training differ with $limit: $(number total_bytes plan.json) and $(number total_bytes dry.json)"
done

# Memory that frozen layers do not need is not planned.
"$TARN" plan model.yaml --json --set train.clip_norm=1 >clipped.json
"$TARN" plan model.yaml --json --set train.clip_norm=1 --set 'encoder.layers=L*8' >trained.json
for key in gradient_bytes optimiser_bytes; do
  [ "$(number $key clipped.json)" -lt "$(number $key trained.json)" ] || fail "freezing saves no $key"
done
# Without clipping, updates are made as soon as gradients are complete, and the remaining gradients count as
# activations. Moments in bf16 take half of the memory.
"$TARN" plan model.yaml --json >mixed.json
[ "$(number gradient_bytes mixed.json)" -eq 0 ] || fail "gradients have memory of their own: $(cat mixed.json)"
[ "$(number total_bytes mixed.json)" -lt "$(number total_bytes clipped.json)" ] || fail "updates at once save nothing"
"$TARN" plan model.yaml --json --set train.moments=bf16 >rounded.json
[ $((2 * $(number optimiser_bytes rounded.json))) -eq "$(number optimiser_bytes mixed.json)" ] ||
  fail "moments in bf16 take $(number optimiser_bytes rounded.json) bytes"
"$TARN" plan model.yaml --json --set train.moments=fp8 >eighth.json
awk -v a="$(number optimiser_bytes eighth.json)" -v b="$(number optimiser_bytes mixed.json)" 'BEGIN { exit !(a > 0.253 * b && a < 0.257 * b) }' ||
  fail "moments in fp8 take $(number optimiser_bytes eighth.json) bytes"
[ "$(number frozen_parameters mixed.json)" -gt 0 ] || fail "no frozen parameters in the plan"
grep -q '"label":"encoder 1 R","frozen":true,"trained_parameters":0,"frozen_parameters":2102784,"gradient_bytes":0,"optimiser_bytes":0' \
  mixed.json || fail "encoder 1 R has something it does not need: $(cat mixed.json)"
"$TARN" plan model.yaml >plan.txt
grep -q '^peak ' plan.txt || fail "no peak in the plan"

# Recomputation: less is kept, and recomputed operations count neither as forward nor as backward.
"$TARN" plan model.yaml --json --set train.recompute=block >block.json
[ "$(number activation_bytes block.json)" -lt $(($(number activation_bytes mixed.json) / 2)) ] ||
  fail "recomputation saves less than half of the activations"
for key in forward_flops_per_token backward_flops_per_token; do
  [ "$(number $key block.json)" = "$(number $key mixed.json)" ] || fail "recomputation changes $key"
done
[ "$(number recompute_flops_per_token mixed.json)" = 0 ] || fail "something is computed again without being asked for"
grep -q '"label":"encoder 2 L".*"recompute_flops_per_token":[1-9]' block.json || fail "encoder 2 L is not computed again"

# The sums of the average use the workspace; the rest is in addition to the translators.
small="--set train.max_tokens=64 --set data.valid=train --set train.keep_last=2"
"$TARN" plan model.yaml --json $small >alone.json
"$TARN" plan model.yaml --json $small --set train.average=2 >average.json
rest=$(($(number trained_parameters average.json) * 4 - $(number activation_bytes average.json) - $(number workspace_bytes average.json)))
[ "$rest" -gt 0 ] || fail "the sums fit into the workspace: $(cat average.json)"
[ $(($(number validation_bytes average.json) - $(number validation_bytes alone.json))) -ge "$rest" ] ||
  fail "sums of $rest bytes are not planned: $(cat alone.json average.json)"

# Data and vocabulary that do not match.
"$TARN" vocab --type whitespace --size 50 --output other text/train.en
if "$TARN" plan model.yaml --set data.vocab=other >out.txt 2>error.txt; then fail "a plan for another vocabulary"; fi
grep -q 'another vocabulary' error.txt || fail "unclear: $(cat error.txt)"

# Plan against measurement, within 10 %: the resident memory of a whole run with validation (loss and BLEU) and
# averaging. Few sentences are enough: a batch of them takes the memory.
[ "${TARN_SANITIZED:-0}" = 1 ] && exit 0
for side in de en; do head -n 60 text/valid.$side >few.$side; done
"$TARN" prepare --vocab vocab.model --source few.de --target few.en --output valid >/dev/null
for case in "fp32 none 1500" "bf16 block 4096"; do
  read -r precision recompute tokens <<<"$case"
  "$TARN" train model.yaml --run "run-$precision-$recompute" --set "train.precision=$precision" \
    --set "train.recompute=$recompute" --set data.valid=valid --set train.average=2 --set train.save_every=1 \
    --set train.keep_last=2 --set valid.max_sentences=20 --set translate.max_len_a=0 --set translate.max_len_b=20 \
    --set train.max_updates=2 --set train.max_tokens=$tokens --set "encoder.layers=(R L)*2" --threads 2 --json >result.json
  planned=$(number planned_bytes result.json)
  measured=$(number peak_resident_bytes result.json)
  echo "$case: planned $planned, measured $measured"
  [ "$measured" -gt $((planned * 9 / 10)) ] || fail "$case: $measured bytes measured, $planned planned"
  [ "$measured" -lt $((planned * 11 / 10)) ] || fail "$case: $measured bytes measured, $planned planned"
done

# The graph structure of a deep stack takes as much memory as its activations, if these are recomputed.
"$TARN" train model.yaml --run run-deep --set model.d_model=32 --set "encoder.layers=L*400" --set decoder.layers=L \
  --set "kinds.L={ mixer: attention, heads: 2, ffn: 64 }" --set train.recompute=block --set train.max_tokens=512 \
  --set train.max_updates=1 --threads 1 --json >result.json
planned=$(number planned_bytes result.json)
measured=$(number peak_resident_bytes result.json)
[ "$measured" -lt $((planned * 11 / 10)) ] || fail "400 layers: $measured bytes measured, $planned planned"
[ "$measured" -gt $((planned * 9 / 10)) ] || fail "400 layers: $measured bytes measured, $planned planned"

# The parts sum to the model, including T5's tables of each stack.
"$TARN" plan model.yaml --vocab-size 1000 --set model.positions=t5 --json >t5.json
jq -e '([.parts[].trained_parameters] | add) == .trained_parameters and ([.parts[].label] | index("encoder") and index("decoder"))' \
  t5.json >/dev/null || fail "T5's tables are in no part: $(cat t5.json)"

# A dry run refuses what the training would refuse.
if (ulimit -v 700000 && "$TARN" train model.yaml --dry-run --threads 2 >out.txt 2>error.txt); then fail "a dry run without memory"; fi
grep -Eq 'needs [0-9]+ MiB of memory and [0-9]+ MiB are available' error.txt || fail "unclear: $(cat error.txt)"

# Duration: from two seconds of updates, from operations without data, and from the log of a run that has started;
# without a limit it is unknown.
sed "s/d_model: 512/d_model: 64/; s/ffn: 1024/ffn: 128/" model.yaml >small.yaml
limits="--set train.max_updates=400 --set train.max_tokens=512"
"$TARN" plan small.yaml --time --json $limits >time.json
jq -e '.time | .source == "probe" and .updates == 400 and .low < .seconds and .seconds < .high and .tokens_per_second > 0' \
  time.json >/dev/null || fail "a probe: $(cat time.json)"
"$TARN" plan small.yaml --time --vocab-size 1000 --json $limits >time.json
jq -e '.time | .source == "operations" and .updates == 400 and .low < .seconds and .seconds < .high' time.json >/dev/null ||
  fail "operations: $(cat time.json)"
"$TARN" plan small.yaml --time --vocab-size 1000 --json --set train.max_updates=0 --set train.max_minutes=0 \
  --set train.max_epochs=0 >time.json 2>error.txt && jq -e '.time.seconds == null' time.json >/dev/null ||
  grep -q 'max_' error.txt || fail "no limit: $(cat time.json error.txt)"
# A limit in minutes determines the time closely, but only if it is the nearest limit.
"$TARN" plan small.yaml --time --vocab-size 1000 --json --set train.max_updates=0 --set train.max_minutes=10 >time.json
jq -e '.time | .seconds > 599 and .seconds < 601 and .low > 587 and .high < 661' time.json >/dev/null ||
  fail "minutes alone: $(cat time.json)"
"$TARN" plan small.yaml --time --json --set train.max_updates=900000000 --set train.max_epochs=2 \
  --set train.max_minutes=9000000 --set train.max_tokens=512 >time.json
jq -e '.time | .epochs == 2 and .low < 0.71 * .seconds' time.json >/dev/null || fail "epochs: $(cat time.json)"
"$TARN" train small.yaml --run run --quiet --set train.max_updates=3 --set train.log_every=1 --set train.max_tokens=512
"$TARN" plan run --time --json --set train.max_updates=30 >time.json
jq -e '.time | .source == "run" and .updates == 30 and .seconds_left < .seconds and .seconds_left > 0' time.json >/dev/null ||
  fail "a run: $(cat time.json)"
"$TARN" plan run --time | grep -Eq '^time: .* left; 3 updates, .* tokens/s; from the run.s own log$' || fail "$("$TARN" plan run --time | tail -1)"
# A run stopped by patience has no time left, unless its patience is increased.
jq '.end = "patience"' run/result.json >ended.json && mv ended.json run/result.json
"$TARN" plan run --time --json --set train.max_updates=30 >time.json
jq -e '.time | .seconds_left == 0 and .updates == 3 and .low == .seconds' time.json >/dev/null || fail "patience: $(cat time.json)"
"$TARN" plan run --time --json --set train.max_updates=30 --set train.patience=9 >time.json
jq -e '.time | .seconds_left > 0 and .updates == 30' time.json >/dev/null || fail "more patience: $(cat time.json)"
