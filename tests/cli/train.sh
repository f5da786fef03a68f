#!/usr/bin/env bash
# tarn train, inspect, average, export: what they print and write.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

"$TARN" train model.yaml --dry-run >out.txt
grep -q "^parameters .* trained, .* frozen; sharing saves" out.txt || fail "dry run: $(cat out.txt)"
grep -q "^memory .* MB" out.txt || fail "dry run: $(cat out.txt)"
refuse 2 "dry run" "$TARN" train model.yaml --dry-run --profile trace.json
"$TARN" train model.yaml --run run --set train.average=2 --profile trace.json >out.txt
grep -Eq '^linear +encoder L1? +forward +[0-9]+ +[0-9.]+ +[0-9.]+% +[0-9.]+$' out.txt || fail "no profile: $(cat out.txt)"
grep -Eq '^optimiser +outside +60 ' out.txt || fail "the profile lacks the optimiser: $(cat out.txt)"
grep -q '"name":"optimiser".*"ph":"X"' trace.json || fail "no trace: $(head -c 500 trace.json)"
[ "$(grep -c '^update .*tokens/s' out.txt)" -eq 12 ] || fail "lines of progress: $(cat out.txt)"
[ "$(grep -c 'validation  loss .*BLEU' out.txt)" -eq 3 ] || fail "validations: $(cat out.txt)"
grep -q '^checkpoint  run/checkpoint_average.safetensors' out.txt || fail "no checkpoint: $(cat out.txt)"
! grep -q $'\r' out.txt || fail "a progress line in a pipe"
for file in config.yaml log.jsonl checkpoint_last.safetensors checkpoint_best.safetensors checkpoint_average.safetensors \
  checkpoint_50.safetensors checkpoint_60.safetensors; do
  [ -s run/$file ] || fail "run/$file is missing"
done
[ ! -e run/checkpoint_40.safetensors ] || fail "keep_last: 2 keeps more"
for key in step time loss lr tokens_per_second grad_norm valid_loss valid_bleu signature; do
  grep -q "\"$key\":" run/log.jsonl || fail "no $key in the log"
done
loss() { sed -nE 's/.*"step":'"$1"',.*"loss":([0-9.]+),"nll".*/\1/p' run/log.jsonl; }
awk "BEGIN { exit !($(loss 60) < $(loss 5) - 1) }" || fail "the loss does not fall: $(loss 5) to $(loss 60)"

"$TARN" inspect run >out.txt
grep -q "encoder.R1.ffn.in.weight .* frozen .* 0  shared: encoder layer 1 3" out.txt || fail "inspect: $(cat out.txt)"
grep -q " 0 frozen, 0 optimiser" out.txt || fail "inspect: $(cat out.txt)"
"$TARN" inspect --json run/checkpoint_last.safetensors >out.txt
grep -q '"kind":"training"' out.txt || fail "inspect --json"
"$TARN" average --output mean run/checkpoint_50.safetensors run/checkpoint_60.safetensors
cmp <(tensors_of mean) <(tensors_of run/checkpoint_average.safetensors) || fail "average differs from the training's"
"$TARN" export --dense run dense
"$TARN" inspect dense >out.txt
grep -q "(dense, update 60" out.txt || fail "export"
head -5 corpus/valid.de | "$TARN" translate dense >a.txt 2>/dev/null
head -5 corpus/valid.de | "$TARN" translate run >b.txt 2>/dev/null
cmp a.txt b.txt || fail "the export translates otherwise"

# JSON, seeds, quiet.
"$TARN" train model.yaml --run seeds --seeds 1,2 --set train.max_updates=20 --json >out.txt
[ "$(grep -c '"kind":"end"' out.txt)" -eq 2 ] || fail "seeds: $(cat out.txt)"
grep -q '"kind":"summary","runs":2' out.txt || fail "summary: $(cat out.txt)"
[ -s seeds/seed-1/log.jsonl ] && [ -s seeds/seed-2/log.jsonl ] || fail "seeds: $(ls seeds)"
"$TARN" train model.yaml --run alone --seeds 3 --set train.max_updates=20 >out.txt
grep -q '^all seeds .* (of one run)$' out.txt || fail "one seed: $(cat out.txt)"
"$TARN" train --resume alone --json | grep -q '^{"kind":"summary","runs":1,"best_mean":[0-9.e+-]*}$' ||
  fail "one seed deviates"
"$TARN" train --resume seeds --quiet >out.txt
[ ! -s out.txt ] || fail "--quiet prints $(cat out.txt)"
"$TARN" train model.yaml --run seed2 --set train.seed=2 --set train.max_updates=20 --quiet
same_runs seeds/seed-2 seed2

"$TARN" train model.yaml --run seed2 --dry-run --json | grep -q '^{"trained_bytes": [0-9]*,.*}$' || fail "no plan in JSON"
"$TARN" train model.yaml --run silent --set train.max_updates=5 --json --quiet >out.txt
[ ! -s out.txt ] || fail "--json --quiet prints $(cat out.txt)"

# A loss whose perplexity is beyond all numbers is still written down; the validation says that such a model is lost.
refuse 1 'the training has diverged: the validation loss is [0-9.e+]* nats a token, over a hundred times.* at update 80;' \
  "$TARN" train model.yaml --run wild --quiet --set train.lr=100 --set train.warmup=0 --set train.max_updates=400 \
  --set train.log_every=1 --set valid.every=80
grep -q '"status": *"failed"' wild/result.json || fail "a run that diverged has not failed: $(cat wild/result.json)"
grep -q '"ppl":1.79769313e308' wild/log.jsonl || fail "the loss did not become large: $(tail -2 wild/log.jsonl)"
grep -q '"kind":"valid","step":80,.*"best":false' wild/log.jsonl || fail "its validation is not in the log: $(tail -2 wild/log.jsonl)"
refuse 1 'the training has diverged: the loss is [0-9.e+]* nats a token, .* at update 101; the last checkpoint is blind/' \
  "$TARN" train model.yaml --run blind --quiet --set train.lr=100 --set train.warmup=0 --set train.max_updates=400 \
  --set data.valid=

# Without its last checkpoint a training cannot go on, and must not begin anew over the others.
cp -r seed2 headless
rm headless/checkpoint_last.safetensors
(cd headless && cksum checkpoint_* config.yaml log.jsonl) >before.txt
refuse 1 "checkpoint_last.safetensors is missing" "$TARN" train --resume headless
(cd headless && cksum checkpoint_* config.yaml log.jsonl) >after.txt
diff before.txt after.txt || fail "a run that cannot go on is changed"

# Options and files that do not fit.
refuse 2 "missing" "$TARN" train
refuse 2 "run DIR is missing" "$TARN" train model.yaml
refuse 2 "whole numbers" "$TARN" train model.yaml --run x --seeds 1,b
refuse 2 "did you mean" "$TARN" train model.yaml --run x --set train.warm_up=3
refuse 1 "gone.yaml" "$TARN" train gone.yaml --run x
refuse 1 "gone.tarn" "$TARN" train model.yaml --run x --set data.train=gone
"$TARN" vocab --type whitespace --size 100 --output other corpus/train.de 2>vocab.txt
refuse 1 "another vocabulary" "$TARN" train model.yaml --run x --set data.vocab=other
[ ! -e x ] || fail "a run directory is made for a training that cannot run: $(ls x)"
refuse 2 "dense" "$TARN" export run x.safetensors
refuse 2 "output" "$TARN" average run
