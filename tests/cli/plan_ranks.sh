#!/usr/bin/env bash
# tarn plan --ranks: bytes sent, memory and speed on many ranks, and refused input.
set -eu
. "$(dirname "$0")/../tiny_run.sh"
command -v jq >/dev/null || { echo "no jq"; exit 77; }
holds() { jq -e "$2" "$1" >/dev/null || fail "not so: $2: $(jq -c .scale "$1")"; }

# Counts of the papers' models, which need no data: gradients of Model4 and Model2 relative to Model0, and of ESN to
# ESN+i.
multi30k=$TARN_SOURCE_DIR/examples/multi30k babylm=$TARN_SOURCE_DIR/examples/babylm
net="--ranks 1,2-16,64 --bandwidth 1e9 --latency 2e-6 --step-seconds 0.5 --optimiser-seconds 0.05 --adding 4e9 --json"
for model in model0 model2 model4; do "$TARN" plan "$multi30k/$model.yaml" --vocab-size 10000 $net >$model.json; done
for model in esn esn-i; do "$TARN" plan "$babylm/$model.yaml" --vocab-size 50257 $net >$model.json; done
bytes() { jq '.scale.points[1].whole.sent_bytes' "$1.json"; }
# Each of two ranks sends every trained value once: half of the gradients, and half of the sums.
[ "$(bytes model0)" -eq "$(jq '4 * .trained_parameters' model0.json)" ] || fail "Model0 sends $(bytes model0)"
[ "$(bytes model4)" -eq "$(jq '4 * .trained_parameters' model4.json)" ] || fail "Model4 sends $(bytes model4)"
awk -v a="$(bytes model4)" -v b="$(bytes model0)" 'BEGIN { exit !(a / b > 0.475 && a / b < 0.485) }' ||
  fail "Model4 sends $(bytes model4) bytes and Model0 $(bytes model0)"
# ESN+i sends twice as much; of its input at most the words of 64 rows of 128 tokens.
values() { jq '.scale.values' "$1.json"; }
awk -v a="$(values esn)" -v b="$(values esn-i)" 'BEGIN { exit !(a / b > 0.5 && a / b < 0.501) }' ||
  fail "the ESN trains $(values esn) values and ESN+i $(values esn-i)"
[ "$(bytes esn)" -eq $((4 * 513 * 50257)) ] || fail "the ESN sends $(bytes esn)"
[ "$(bytes esn-i)" -eq $((4 * (513 * 50257 + 512 * 2 * 4096))) ] || fail "ESN+i sends $(bytes esn-i)"
holds model0.json '[.scale.points[].ranks] == [1, 2, 4, 8, 16, 64]'
holds model0.json '.scale.source == "given" and .scale.points[0].whole.efficiency == 1 and .scale.points[0].whole.sent_bytes == 0'
holds model0.json '[.scale.points[].whole.efficiency] | . == (sort | reverse)'
holds model0.json '.scale.points[5] | .sharded.memory_bytes < .whole.memory_bytes and .sharded.optimiser_bytes < .whole.optimiser_bytes / 60'
holds model4.json '[.scale.parts[] | select(.label | test("R1")) | .values] | add == 0'
"$TARN" plan "$multi30k/model0.yaml" --vocab-size 10000 $net --set train.reduce=bf16 >half.json
[ "$((2 * $(bytes half)))" -eq "$(bytes model0)" ] || fail "bf16 sends $(bytes half)"

# Measured by updates, or estimated without data; as text.
"$TARN" plan model.yaml --ranks 2 --threads 1 --json >measured.json
holds measured.json '.scale.source == "probe" and .scale.optimiser_seconds > 0 and .scale.optimiser_seconds < .scale.step_seconds'
holds measured.json '.scale.adding > 1e6 and .scale.alone_seconds > 0 and .scale.update_tokens > 0'
"$TARN" plan model.yaml --ranks 2 --vocab-size 300 --threads 1 --json >estimated.json
holds estimated.json '.scale.source == "operations" and .scale.optimiser_seconds == 0'
"$TARN" plan model.yaml --ranks 1,4 --step-seconds 1 --threads 1 >text.txt
grep -Eq '^all +[0-9]+ +[0-9.]+$' text.txt || fail "no sum of the parts: $(cat text.txt)"
[ "$(grep -Ec '^ +4 +[0-9.]+ .*0\.9[0-9]+ +[0-9.]+$' text.txt)" -eq 2 ] || fail "no two rows for four ranks: $(cat text.txt)"

# Over a link, sums overlap with the backward pass; on one machine they follow it, without waiting.
holds model0.json '.scale.overlap and (.scale.one_machine | not)'
grep -q '; sums in fp32, during the backward pass$' text.txt || fail "when sums are made: $(cat text.txt)"
"$TARN" plan model.yaml --ranks 4 --one-machine --step-seconds 1 --threads 1 >one.txt
grep -q '^ranks: on one machine, through shared memory; sums in fp32, after the backward pass$' one.txt || fail "one machine: $(cat one.txt)"
"$TARN" plan model.yaml --ranks 4 --one-machine --step-seconds 1 --threads 1 --json >one.json
holds one.json '.scale.one_machine and (.scale.overlap | not) and .scale.bandwidth == null and .scale.points[0].whole.network_seconds == 0'

# Unreadable or inconsistent input.
refuse() {
  local words=$1
  shift
  if "$TARN" plan model.yaml "$@" >out.txt 2>error.txt; then fail "accepted: $*"; else [ $? -eq 2 ] || fail "$*: not a mistake of usage"; fi
  [ "$(wc -l <error.txt)" -eq 1 ] && grep -q -- "$words" error.txt || fail "$*: $(cat error.txt)"
}
for list in "" 0 x 1, ,1 4-2 1-2-4 2x -1 1048577 99999999999999999999 "1 2" \
  "$(printf '1-1048576,1-1048576,1-1048576,1-1048576')"; do refuse '--ranks expects numbers' --ranks "$list"; done
refuse '--bandwidth needs --ranks' --bandwidth 1e9
refuse '--latency needs --ranks' --latency 0
refuse '--one-machine needs --ranks' --one-machine
refuse 'describe a link' --ranks 2 --one-machine --latency 1e-6
refuse '--optimiser-seconds needs --step-seconds' --ranks 2 --optimiser-seconds 1
refuse 'a part of --step-seconds' --ranks 2 --step-seconds 1 --optimiser-seconds 1
refuse 'bandwidth' --ranks 2 --bandwidth 0
refuse 'latency' --ranks 2 --latency nan
sed -E '/^  (lr|beta.|weight_decay|schedule|warmup):/d; s/adamw/ridge/; s/dropout: .*/dropout: 0/' "$babylm/esn.yaml" >ridge.yaml
if "$TARN" plan ridge.yaml --vocab-size 500 --ranks 2 >out.txt 2>error.txt; then fail "ridge"; fi
grep -q 'train.optimiser: ridge makes no updates' error.txt || fail "ridge: $(cat error.txt)"
