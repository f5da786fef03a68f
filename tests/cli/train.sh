#!/usr/bin/env bash
# tarn train, inspect, average, export: output and files.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

"$TARN" train model.yaml --dry-run >out.txt
grep -Eq "^parameters .* trained, .* frozen; sharing saves [0-9.]+ M more \(layers [0-9.]+ M, embeddings [0-9.]+ M\)$" out.txt || fail "dry run: $(cat out.txt)"
grep -q "^memory .* MB" out.txt || fail "dry run: $(cat out.txt)"
refuse 2 "dry run" "$TARN" train model.yaml --dry-run --profile trace.json
refuse 1 "none.model: there is no such file" "$TARN" train model.yaml --run none --set data.vocab=none.model --profile none.json
[ ! -s out.txt ] && [ ! -e none.json ] || fail "a profile of a training that did not begin: $(cat out.txt)"
"$TARN" train model.yaml --run run --set train.average=2 --profile trace.json >out.txt
grep -Eq '^linear +encoder L1? +forward +[0-9]+ +[0-9.]+ +[0-9.]+%( +[0-9.]+){5} +-?[0-9.]+$' out.txt || fail "no profile: $(cat out.txt)"
grep -Eq '^update +embeddings +backward +59 ' out.txt || fail "the profile lacks the updates: $(cat out.txt)"
grep -Eq '^left out +the first update, .*: [0-9.]+ s$' out.txt || fail "the first update is not said to be left out: $(cat out.txt)"
"$TARN" train model.yaml --run single --set train.max_updates=1 --profile single.json | grep -A 1 '^left out' >out.single
grep -q '^ *there was no other one, so the table has no update$' out.single || fail "a single update: $(cat out.single)"
grep -q '"name":"update".*"ph":"X"' trace.json || fail "no trace: $(head -c 500 trace.json)"
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
"$TARN" average --output mean run/checkpoint_60.safetensors 2>told.txt
grep -q "warning: only one checkpoint was given" told.txt || fail "the mean of one: $(cat told.txt)"
"$TARN" average --output mean run/checkpoint_50.safetensors run/checkpoint_60.safetensors 2>told.txt
! grep -q warning told.txt || fail "the mean of two: $(cat told.txt)"
cmp <(tensors_of mean) <(tensors_of run/checkpoint_average.safetensors) || fail "average differs from the training's"
"$TARN" export --dense run dense
"$TARN" inspect dense >out.txt
grep -q "(dense, update 60" out.txt || fail "export"
head -5 corpus/valid.de | "$TARN" translate dense >a.txt 2>/dev/null
head -5 corpus/valid.de | "$TARN" translate run >b.txt 2>/dev/null
cmp a.txt b.txt || fail "the export translates otherwise"

# Every command that takes a run reports which of its checkpoints it used, and uses the requested one.
set_average() { sed -i -E '/"checkpoint":"average"/s/"'"$1"'":[0-9.e+-]+/"'"$1"'":'"$2"'/' run/log.jsonl; }
says() {  # PATTERN COMMAND...
  local pattern=$1
  shift
  "$@" >out.txt 2>told.txt <one.de || fail "$*: $(cat told.txt)"
  grep -Eq "^tarn $2: took run/checkpoint_$pattern" told.txt || fail "$*: no \"$pattern\" in: $(cat told.txt)"
}
head -1 corpus/valid.de >one.de
set_average valid_bleu 0.5
says 'best.safetensors \(BLEU [0-9.]+ in validation, the average 0.50\)' "$TARN" translate run
set_average valid_bleu 99.5
says 'average.safetensors \(BLEU 99.50 in validation, the best [0-9.]+\)' "$TARN" translate run --json
grep -q '"checkpoint":"run/checkpoint_average.safetensors"' out.txt || fail "--json: $(cat out.txt)"
checkpoints=(best last average)
[ -z "${TARN_SANITIZED:-}" ] || checkpoints=(last)
for which in "${checkpoints[@]}"; do
  says "$which.safetensors \(--checkpoint\)" "$TARN" translate run --checkpoint $which
  says "$which.safetensors" "$TARN" inspect run --json --checkpoint $which
  grep -q "\"path\":\"run/checkpoint_$which.safetensors\"" out.txt || fail "inspect: $(cut -c1-200 out.txt)"
  says "$which.safetensors" "$TARN" export --dense run dense --checkpoint $which
  says "$which.safetensors" "$TARN" prune run pruned --encoder-layers-to-keep 1,2 --checkpoint $which
  says "$which.safetensors" "$TARN" average --output mean run --checkpoint $which
  says "$which.safetensors" "$TARN" test run --source corpus/valid.de --reference corpus/valid.en --checkpoint $which
  grep -q "\"checkpoint\": *\"checkpoint_$which.safetensors\"" run/test.json || fail "test: $(cat run/test.json)"
done
# A training continues when the reader of its output exits.
mkfifo pipe
exec 3<>pipe 4>pipe 3<&-
"$TARN" train model.yaml --run unread --set train.max_updates=1 >&4 2>told.txt || fail "a training without a reader: $? $(cat told.txt)"
exec 4>&-
grep -q '"status": "finished"' unread/result.json || fail "a training without a reader is not finished"
rm -r unread pipe
"$TARN" train model.yaml --run tuned --set train.init_from=run --set train.max_updates=1 --quiet 2>told.txt
grep -q "train.init_from: took run/checkpoint_average.safetensors (BLEU 99.50" told.txt || fail "init_from: $(cat told.txt)"
refuse 2 '--checkpoint cannot be "bests"; did you mean best?' "$TARN" translate run --checkpoint bests
refuse 2 "run/checkpoint_last.safetensors is no run directory" \
  "$TARN" inspect run/checkpoint_last.safetensors --checkpoint best

# JSON, seeds, quiet.
"$TARN" train model.yaml --run seeds --seeds 1,2 --set train.max_updates=20 --json >out.txt
[ "$(grep -c '"kind":"end"' out.txt)" -eq 2 ] || fail "seeds: $(cat out.txt)"
grep -q '"kind":"summary","runs":2' out.txt || fail "summary: $(cat out.txt)"
[ -s seeds/seed-1/log.jsonl ] && [ -s seeds/seed-2/log.jsonl ] || fail "seeds: $(ls seeds)"
"$TARN" train model.yaml --run alone --seeds 3 --set train.max_updates=20 >out.txt
grep -q '^all seeds   best [A-Za-z]* [0-9.]* (of one run)$' out.txt || fail "one seed: $(cat out.txt)"
"$TARN" train --resume alone --json | grep -q '^{"kind":"summary","runs":1,"measure":"[a-z]*","best_mean":[0-9.e+-]*}$' ||
  fail "one seed deviates"
"$TARN" train model.yaml --run ppl --set valid.metric=ppl --set train.max_updates=20 >out.txt
grep -q '^update .* perplexity [0-9]*\.[0-9][0-9] .*(best so far)$' out.txt && grep -q '^best  *perplexity [0-9]*\.[0-9][0-9] at update' out.txt ||
  fail "chosen by perplexity: $(cat out.txt)"
"$TARN" train --resume ppl --set train.max_updates=24 --json | grep -q '"valid_ppl":' || fail "no perplexity in JSON"
"$TARN" train --resume seeds --quiet >out.txt
[ ! -s out.txt ] || fail "--quiet prints $(cat out.txt)"
"$TARN" train model.yaml --run seed2 --set train.seed=2 --set train.max_updates=20 --quiet
same_runs seeds/seed-2 seed2

"$TARN" train model.yaml --run seed2 --dry-run --json | grep -q '^{"trained_bytes":[0-9]*,.*}$' || fail "no plan in JSON"
"$TARN" train model.yaml --run silent --set train.max_updates=5 --json --quiet >out.txt
[ ! -s out.txt ] || fail "--json --quiet prints $(cat out.txt)"

# A loss with an infinite perplexity is still recorded; the validation reports that the model has diverged.
refuse 1 'the training has diverged: the validation loss is [0-9.e+]* nats a token, over a hundred times.* at update 80;' \
  "$TARN" train model.yaml --run wild --quiet --set train.lr=100 --set train.warmup=0 --set train.max_updates=400 \
  --set train.log_every=1 --set valid.every=80
grep -q '"status": *"failed"' wild/result.json || fail "a run that diverged has not failed: $(cat wild/result.json)"
grep -q '"ppl":1.79769313e308' wild/log.jsonl || fail "the loss did not become large: $(tail -2 wild/log.jsonl)"
grep -q '"kind":"valid","step":80,.*"best":false' wild/log.jsonl || fail "its validation is not in the log: $(tail -2 wild/log.jsonl)"
refuse 1 'the training has diverged: the loss is [0-9.e+]* nats a token, .* at update 101; the last checkpoint is blind/' \
  "$TARN" train model.yaml --run blind --quiet --set train.lr=100 --set train.warmup=0 --set train.max_updates=400 \
  --set data.valid=

# Without its last checkpoint a training cannot resume, and must not restart over the others.
cp -r seed2 headless
rm headless/checkpoint_last.safetensors
(cd headless && cksum checkpoint_* config.yaml log.jsonl) >before.txt
refuse 1 "checkpoint_last.safetensors is missing" "$TARN" train --resume headless
(cd headless && cksum checkpoint_* config.yaml log.jsonl) >after.txt
diff before.txt after.txt || fail "a run that cannot go on is changed"

# A run whose log lost a line resumes only on request.
"$TARN" train model.yaml --run torn --set train.max_updates=30 --quiet
cp -r torn torn2
sed -i 2d torn/log.jsonl
refuse 1 "torn/log.jsonl is not the log of torn/checkpoint_last.safetensors: .* --resume torn --accept-log" \
  "$TARN" train --resume torn --set train.max_updates=40
refuse 1 "is not the log of" "$TARN" train --resume torn --dry-run
refuse 2 "--resume" "$TARN" train model.yaml --run x --accept-log
"$TARN" train --resume torn --set train.max_updates=40 --accept-log --quiet 2>error.txt
grep -q "torn/log.jsonl: .*the run goes on and is marked" error.txt || fail "accepted silently: $(cat error.txt)"
grep -q '"kind":"log_accepted","step":30,' torn/log.jsonl || fail "no mark: $(cat torn/log.jsonl)"
"$TARN" train --resume torn2 --set train.max_updates=40 --accept-log --quiet
! grep -q log_accepted torn2/log.jsonl || fail "a log that fits is marked"

refuse 1 "silent: there is no checkpoint_average.safetensors in this run; there is: best, last" \
  "$TARN" translate silent --checkpoint average

# Resuming a finished run is reported, in JSON too.
"$TARN" train --resume torn --json >out.txt 2>told.txt
grep -q '^tarn train: torn is over: train.max_updates reached at update 40, so nothing is left to train' told.txt ||
  fail "resumed silently: $(cat told.txt)"
"$TARN" train --resume torn --set train.max_updates=42 >out.txt 2>told.txt
grep -q '^run .* from update 40 on, where it had ended$' out.txt || fail "resumed silently: $(cat out.txt)"
[ ! -s told.txt ] || fail "a run that goes on is over: $(cat told.txt)"

# A limit below the current state leaves nothing to train: --quiet does not hide that.
"$TARN" train --resume torn --set train.max_updates=99 --set train.max_minutes=0.00001 --quiet >out.txt 2>told.txt
grep -q '^tarn train: torn is over: train.max_minutes reached at update 42, so nothing is left to train' told.txt ||
  fail "over its limit silently: $(cat told.txt)"
[ "$(wc -l <told.txt)" -eq 1 ] && [ ! -s out.txt ] || fail "--quiet says more: $(cat told.txt out.txt)"
"$TARN" train --resume torn --quiet >out.txt 2>told.txt
[ ! -s told.txt ] && [ ! -s out.txt ] || fail "--quiet says what nobody asked: $(cat told.txt out.txt)"

# Without sharing nothing is saved.
sed 's/(R1 L1)\*2/R L/; s/embeddings: all/embeddings: none/' model.yaml >unshared.yaml
"$TARN" train unshared.yaml --dry-run | grep -q '^parameters .* frozen$' || fail "sharing without shared sets"
"$TARN" train model.yaml --dry-run --set 'encoder.layers=L*2' |
  grep -q '^parameters .* frozen; sharing embeddings saves [0-9.]* M more$' || fail "sharing of embeddings"

# A trained reservoir of `place` is not one, and a frozen one is not reported.
sed 's/layers: (R1 L1)\*2/place: { reservoirs: 2, of: 4 }/; s/, frozen: yes//' model.yaml >placed.yaml
"$TARN" train placed.yaml --dry-run >out.txt 2>told.txt
grep -q '^tarn: warning: placed.yaml: encoder.place: the reservoirs R are trained, because kinds.R.frozen is no' told.txt ||
  fail "trained reservoirs: $(cat told.txt)"
"$TARN" train placed.yaml --dry-run --set kinds.R.frozen=yes >out.txt 2>told.txt
[ ! -s told.txt ] || fail "frozen reservoirs: $(cat told.txt)"

# Options and files that do not match.
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
