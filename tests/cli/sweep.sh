#!/usr/bin/env bash
# tarn sweep and tarn test: output, files and refusals.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

cat >sweep.yaml <<'END'
base: model.yaml
baseline: regular
seeds: [1, 2]
parallel: 2
threads: 1
set:
  train: { max_updates: 6, keep_last: 1, log_every: 3 }
  valid: { every: 3, max_sentences: 2 }
test: { source: corpus/valid.de, reference: corpus/valid.en, beam: 1 }
equalize: parameters
variants:
  regular: { encoder: { layers: L*2 } }
  half: { encoder.layers: R L, equalize: no }
  small: { encoder.layers: R1 R1, decoder.layers: L1, equalize: trained }
  flops: { encoder.layers: L*3, decoder.layers: L, equalize: flops }
END

"$TARN" sweep sweep.yaml --dry-run >out.txt 2>error.txt
grep -Eq '^regular +[0-9]+ +0 +[0-9]+ +[0-9.]+ +[0-9]+ +[0-9.]+  baseline$' out.txt || fail "dry run: $(cat out.txt)"
grep -Eq '^half +[0-9]+ +[1-9][0-9]+ ' out.txt || fail "dry run: $(cat out.txt)"
grep -q '^8 runs, 8 of them to be trained, 2 at a time with 1 thread each' out.txt || fail "dry run: $(cat out.txt)"
grep -q '^about [0-9]* s of training more' out.txt || fail "dry run: $(cat out.txt)"
# Within 1 %, and reported.
! grep -q '^half .*equalized' out.txt || fail "equalize: no is not heard: $(cat out.txt)"
for name in regular small flops; do
  off=$(sed -nE "s/^$name +equalized by .*\(([+-][0-9.]+) %\).*/\1/p" out.txt)
  awk "BEGIN { exit !($off <= 1 && $off >= -1) }" || fail "$name is off by $off %: $(cat out.txt)"
done
grep -q '^flops .*kinds.L.ffn=' out.txt || fail "no width is said: $(cat out.txt)"
"$TARN" sweep sweep.yaml --dry-run --json 2>error.txt | grep -q '^{"name":"[^"]*","baseline":"regular",.*"adjusted":\["kinds.L.ffn=' ||
  fail "dry run as JSON"
"$TARN" sweep sweep.yaml --dry-run --json 2>error.txt |
  grep -q '"epoch_seconds":[0-9.e-]*,"run_seconds":[0-9.e-]*,.*"training_seconds":[0-9]' || fail "no times in the JSON"
"$TARN" sweep sweep.yaml --dry-run --json 2>error.txt | grep -q '"path"' && fail "a run without a folder has a path"
[ ! -e out ] || fail "a dry run writes"
# If no width affects the measure, none is changed.
sed 's/^  half:.*/  half: { encoder.layers: R R, decoder.layers: R, equalize: trained }/' sweep.yaml >frozen.yaml
"$TARN" sweep frozen.yaml --dry-run >out.txt 2>error.txt || fail "equalizing frozen layers: $(cat error.txt)"
grep -q '^half .*; ffn unchanged; 1 % CANNOT BE MET: the widths of its FFNs do not change that$' out.txt || fail "equalizing frozen layers: $(cat out.txt)"
grep -q "variant half cannot come within 1 % of the base's trained: .*; the widths of its FFNs do not change that" error.txt || fail "no warning: $(cat error.txt)"
# A kind set for all variants may be used by only some of them.
printf 'base: model.yaml\nbaseline: plain\nseeds: [1]\nset: { kinds.Q: { heads: 2, ffn: 8, frozen: yes } }\nvariants:\n  plain: {}\n  other: { encoder.layers: L Q }\n' >kinds.yaml
"$TARN" sweep kinds.yaml --dry-run >out.txt 2>error.txt || fail "a kind for some variants: $(cat error.txt)"
sed 's/^seeds:.*/seeds: [1, 2]\nbudget: 30 s/' sweep.yaml >budget.yaml
"$TARN" sweep budget.yaml --dry-run >out.txt 2>error.txt
grep -q 'budget 30 s of training each: at least 2 min more' out.txt || fail "budget: $(cat out.txt)"
sed 's/^parallel:.*/parallel: 40/; s/^threads:.*/threads: 1/' budget.yaml >wide.yaml
"$TARN" sweep wide.yaml --dry-run >out.txt 2>error.txt
grep -q 'budget 30 s of training each: at least 30 s more' out.txt || fail "more places than runs: $(cat out.txt)"

"$TARN" sweep sweep.yaml --output out >out.txt 2>error.txt || fail "the sweep fails: $(cat out.txt error.txt)"
[ "$(grep -c '^finished .*test BLEU' out.txt)" -eq 8 ] || fail "runs: $(cat out.txt)"
# All variants with one seed come before the next seed.
grep '^started' out.txt | awk '{ if ($4 < last) exit 1; last = $4 }' || fail "order: $(cat out.txt)"
for file in sweep.yaml base.yaml sweep.json half/seed-2/{config.yaml,log.jsonl,result.json,test.json,test.hyp}; do
  [ -s out/$file ] || fail "out/$file is missing"
done
[ "$(wc -l <out/half/seed-1/test.hyp)" -eq 20 ] || fail "test.hyp: $(cat out/half/seed-1/test.hyp)"
head -1 out/half/seed-1/log.jsonl | grep -q '"kind":"valid","step":0,' ||
  fail "the curve does not begin at 0: $(head -2 out/half/seed-1/log.jsonl)"
"$TARN" translate out/half/seed-1 --beam 1 <corpus/valid.de >again.txt 2>/dev/null
cmp again.txt out/half/seed-1/test.hyp
before=$(cat out/half/seed-1/test.json | sed '/seconds/d')
"$TARN" test out/half/seed-1 --source corpus/valid.de --reference corpus/valid.en --beam 1 >out.txt
grep -q '^BLEU ' out.txt || fail "tarn test prints $(cat out.txt)"
[ "$before" = "$(sed '/seconds/d' out/half/seed-1/test.json)" ] || fail "tarn test gives other scores"

# A test of another checkpoint is not the sweep's; a sweep that names a checkpoint tests that one.
"$TARN" test out/half/seed-1 --source corpus/valid.de --reference corpus/valid.en --beam 1 --checkpoint last >out.txt
grep -q '"checkpoint": "checkpoint_last.safetensors"' out/half/seed-1/test.json || fail "test: $(cat out/half/seed-1/test.json)"
"$TARN" sweep sweep.yaml --output out >out.txt 2>error.txt
[ "$(grep -c '^finished .*test BLEU' out.txt)" -eq 1 ] || fail "another checkpoint's test counts: $(cat out.txt)"
[ "$before" = "$(sed '/seconds/d' out/half/seed-1/test.json)" ] || fail "the test of the sweep: $(cat out/half/seed-1/test.json)"
sed 's/beam: 1 }/beam: 1, checkpoint: last }/' sweep.yaml >last.yaml
refuse 2 "its runs are tested otherwise" "$TARN" sweep last.yaml --output out
sed -i 's/^seeds:.*/seeds: [1]/; /^  \(half\|small\|flops\)/d' last.yaml
"$TARN" sweep last.yaml --output last >out.txt 2>error.txt || fail "checkpoint: last: $(cat error.txt)"
grep -q '"checkpoint": "checkpoint_last.safetensors"' last/regular/seed-1/test.json || fail "$(cat last/regular/seed-1/test.json)"
sed -i 's/checkpoint: last/checkpoint: lasts/' last.yaml
refuse 2 'test.checkpoint' "$TARN" sweep last.yaml --output lasts

# A second run has nothing to do; seeds and variants may be added, other settings may not change.
"$TARN" sweep sweep.yaml --output out >out.txt 2>error.txt
[ "$(grep -c '^skipped' out.txt)" -eq 8 ] && [ "$(wc -l <out.txt)" -eq 9 ] || fail "again: $(cat out.txt)"
# The validation shown is that of the checkpoint that counts: that of an average only if it is better.
cp -r out averaged
average() {  # SEED BLEU
  echo '{"kind":"valid","step":6,"epoch":1,"time":9,"valid_loss":9,"valid_nll":9,"valid_bleu":'"$2"',"checkpoint":"average"}' \
    >>averaged/half/seed-"$1"/log.jsonl
}
average 1 -5
average 2 77
"$TARN" sweep sweep.yaml --output averaged >out.txt 2>error.txt || fail "averages: $(cat error.txt)"
grep -Eq '^skipped .*half seed 1 .*, validation BLEU [0-9]' out.txt || fail "not that of the best: $(cat out.txt)"
grep -Eq '^skipped .*half seed 2 .*, validation BLEU 77.00' out.txt || fail "not that of the average: $(cat out.txt)"
sed 's/^seeds:.*/seeds: [1, 2, 5]/; s/^variants:/variants:\n  more: { encoder.layers: L*2, train: { lr: 0.001, freeze: { encoder.layer1: 2 } } }/' sweep.yaml >more.yaml
"$TARN" sweep more.yaml --output out --json >out.txt 2>error.txt || fail "more: $(cat error.txt)"
grep -q '"train.freeze": "{encoder.layer1: 2}"' out/sweep.json || fail "a map as value: $(cat out/sweep.json)"
[ "$(grep -c '"kind":"finished"' out.txt)" -eq 7 ] || fail "more runs: $(cat out.txt)"
sed 's/max_updates: 6/max_updates: 7/' more.yaml >other.yaml
refuse 2 'out/.*/seed-1/config.yaml was begun with "max_updates: 6", but the sweep now says "max_updates: 7"' \
  "$TARN" sweep other.yaml --output out
refuse 2 "not in the file any more" "$TARN" sweep sweep.yaml --output out
sed 's/beam: 1/beam: 3/' more.yaml >other.yaml
refuse 2 "tested otherwise" "$TARN" sweep other.yaml --output out
sed -i 's/"precision": *"fp32"/"precision": "int8"/' out/sweep.json
refuse 2 "tested otherwise.*precision" "$TARN" sweep more.yaml --output out
# A sweep from before that key existed can be continued: its tests were computed in fp32.
sed -i '/"precision": "int8"/d; s/"beam": 1,$/"beam": 1/' out/sweep.json
sed -i '/"precision": "fp32"/d' out/half/seed-1/test.json
"$TARN" sweep more.yaml --output out >out.txt 2>error.txt || fail "a sweep without test.precision: $(cat error.txt)"
[ "$(grep -c '^skipped' out.txt)" -eq 15 ] || fail "tested again: $(cat out.txt)"
sed -i 's/^set:/set:\n  equalize: parameters/' other.yaml
refuse 2 "other.yaml:[0-9]*: equalize is no key of a configuration; it stands beside set" "$TARN" sweep other.yaml --output out
# A plan of looks comes before the runs; threads that the file does not give are those of the folder, on any machine.
cp more.yaml planned.yaml && echo 'sequential: { max_seeds: 5 }' >>planned.yaml
refuse 2 "sequential was added after runs were finished" "$TARN" sweep planned.yaml --output out
cp out/sweep.json kept.json && jq '.sequential = {first: 2, max_seeds: 9, looks: [9], measure: "test_bleu", alpha: 0.05, spending: "pocock", equivalence: 0, futility: 0.1}' kept.json >out/sweep.json
refuse 2 "sequential, or the seeds from which its looks follow, has changed" "$TARN" sweep planned.yaml --output out
mv kept.json out/sweep.json
mkdir elsewhere && echo '{"threads": 7, "variants": [], "seeds": []}' >elsewhere/sweep.json
sed '/^threads:/d' more.yaml >any.yaml
"$TARN" sweep any.yaml --output elsewhere --dry-run 2>/dev/null | grep -q 'with 7 threads each' || fail "threads of the folder"
refuse 2 "holds a run" "$TARN" sweep more.yaml --output out/half/seed-1
refuse 2 "no sweep to go on with" "$TARN" sweep --output nowhere

# Runs finished in another sweep with the same settings are copied, whatever their variant is called there.
cat >shared.yaml <<'END'
base: model.yaml
baseline: plain
seeds: [2, 7]
parallel: 2
threads: 1
set:
  train: { max_updates: 6, keep_last: 1, log_every: 3 }
  valid: { every: 3, max_sentences: 2 }
test: { source: corpus/valid.de, reference: corpus/valid.en, beam: 1 }
variants:
  plain: { encoder.layers: L L }
  other: { encoder.layers: L L R }
END
"$TARN" sweep shared.yaml --output shared --reuse out --dry-run >out.txt 2>error.txt || fail "reuse: $(cat error.txt)"
grep -q '^waiting .*plain seed 2  reused from out/regular/seed-2$' out.txt || fail "no word of reuse: $(cat out.txt)"
grep -q '^4 runs, 3 of them to be trained' out.txt || fail "reused runs are not counted: $(cat out.txt)"
mkdir -p shared/plain/.seed-2.partial
for file in log.jsonl checkpoint_average.safetensors log.jsonl.tmp.1; do
  echo rubbish >shared/plain/.seed-2.partial/$file  # from an interrupted copy, possibly of another run
done
refuse 2 'corpus: there is no sweep whose runs could be reused' "$TARN" sweep shared.yaml --output shared --reuse corpus
"$TARN" sweep shared.yaml --output shared --reuse out >out.txt 2>error.txt || fail "reuse: $(cat out.txt error.txt)"
grep -q '^reused .*plain seed 2 .*test BLEU' out.txt || fail "not reused: $(cat out.txt)"
[ "$(grep -c '^finished' out.txt)" -eq 3 ] || fail "reused runs: $(cat out.txt)"
for file in out/regular/seed-2/*; do
  [ "${file##*/}" = lock ] || cmp "$file" "shared/plain/seed-2/${file##*/}"
done
diff <(ls out/regular/seed-2 | grep -v lock) <(ls shared/plain/seed-2 | grep -v reused.json) || fail "other files"
grep -q '"from": "out/regular/seed-2"' shared/plain/seed-2/reused.json || fail "the origin is not told"
[ ! -e shared/plain/.seed-2.partial ] || fail "a partial copy is left"
"$TARN" compare shared >out.txt 2>error.txt || fail "reused runs are not compared: $(cat error.txt)"
sed 's/beam: 1/beam: 2/' shared.yaml >other.yaml
"$TARN" sweep other.yaml --reuse out --dry-run >out.txt 2>error.txt
grep -q 'reused from' out.txt && fail "a run of another test is reused: $(cat out.txt)"
grep -q 'tested otherwise' error.txt || fail "another test: $(cat error.txt)"
cp -r out elder
sed -i 's/"version": "[^"]*"/"version": "0.0.0"/' elder/regular/seed-2/result.json
"$TARN" sweep shared.yaml --reuse elder --dry-run >out.txt 2>error.txt
grep -q 'reused from' out.txt && fail "a run of another version is reused: $(cat out.txt)"
grep -q 'by version 0.0.0' error.txt || fail "another version: $(cat error.txt)"

sed -i 's/"version": "0.0.0"/"version": "'"$("$TARN" --version | grep -o '[0-9.]*' | head -n 1)"'"/' elder/regular/seed-2/result.json
"$TARN" sweep shared.yaml --reuse elder --dry-run 2>error.txt | grep -q 'reused from elder' || fail "not reused: $(cat error.txt)"
cp elder/regular/seed-2/result.json kept.json
sed -i 's/"data_hash": "[^"]*"/"data_hash": "0123"/' elder/regular/seed-2/result.json
"$TARN" sweep shared.yaml --reuse elder --dry-run >out.txt 2>error.txt
! grep -q 'reused from' out.txt && grep -q 'warning: elder/regular/seed-2: it was trained on other data' error.txt || fail "other data: $(cat out.txt error.txt)"
mv kept.json elder/regular/seed-2/result.json
echo 'model: { d_modle: 3 }' >elder/regular/seed-2/config.yaml
"$TARN" sweep shared.yaml --reuse elder --dry-run >out.txt 2>error.txt || fail "a bad run to reuse: $(cat error.txt)"
grep -q 'warning: elder/regular/seed-2/config.yaml:1: .*: the run is not reused' error.txt || fail "a bad run: $(cat error.txt)"

# Paths may have arbitrary bytes; JSON has U+FFFD for invalid UTF-8.
odd=$'b\xe4d'
cp shared.yaml "$odd.yaml"
"$TARN" sweep "$odd.yaml" --output "$odd" --reuse out --json >out.txt 2>error.txt || fail "bytes: $(cat error.txt)"
grep -q '"kind":"finished"' out.txt && grep -q $'"path":"b\xef\xbf\xbdd/' out.txt || fail "bytes: $(cat out.txt)"
grep -q $'"name": "b\xef\xbf\xbdd"' "$odd/sweep.json" || fail "bytes: $(cat "$odd/sweep.json")"
"$TARN" sweep --output "$odd" >out.txt || fail "bytes: the sweep does not go on"
"$TARN" compare "$odd" --json | jq . >out.txt || fail "bytes: compare"
[ "$(grep -c $'"path": "b\xef\xbf\xbdd/' out.txt)" -eq 4 ] || fail "bytes: runs are missing: $(cat out.txt)"
cp corpus/valid.en "$odd.en"
"$TARN" test "$odd/plain/seed-7" --source corpus/valid.de --reference "$odd.en" --beam 1 --quiet || fail "bytes: test"
grep -q $'"reference": "b\xef\xbf\xbdd.en"' "$odd/plain/seed-7/test.json" || fail "bytes: test.json"
"$TARN" sweep shared.yaml --output again --reuse "$odd" >out.txt 2>error.txt || fail "bytes: reuse: $(cat error.txt)"
grep -q $'"from": "b\xef\xbf\xbdd/' again/other/seed-2/reused.json || fail "bytes: $(ls again/other/seed-2)"
grep -q '"from": "out/regular/seed-2"' again/plain/seed-2/reused.json || fail "a copy of a copy names the copy: $(cat again/plain/seed-2/reused.json)"

# A failed run is reported, not retried by default, and does not block the others.
cat >fails.yaml <<'END'
base: model.yaml
baseline: good
seeds: [1]
threads: 1
set: { train.max_updates: 4, valid.every: 4, valid.bleu: no }
variants:
  good: {}
  bad: { train.lr: 0.001 }
END
mkdir -p mixed/bad/seed-1
echo damaged >mixed/bad/seed-1/checkpoint_last.safetensors
code=0
"$TARN" sweep fails.yaml --output mixed >out.txt 2>error.txt || code=$?
[ $code -eq 1 ] || fail "a failed run gives exit code $code"
grep -q '^failed .*bad seed 1.*this is text\|^failed .*bad seed 1.*cut' out.txt || fail "no word of the failure: $(cat out.txt)"
grep -q '1 of 2 runs failed' error.txt || fail "no word of the failure: $(cat error.txt)"
grep -q '"status": "failed"' mixed/bad/seed-1/result.json || fail "not recorded"
code=0
"$TARN" sweep fails.yaml --output mixed >out.txt 2>error.txt || code=$?
[ $code -eq 1 ] && [ "$(grep -c '^skipped' out.txt)" -eq 2 ] || fail "tried again: $(cat out.txt)"
rm mixed/bad/seed-1/checkpoint_last.safetensors
"$TARN" sweep fails.yaml --output mixed --retry-failed >out.txt || fail "--retry-failed: $(cat out.txt)"
grep -q '^finished .*bad seed 1' out.txt || fail "--retry-failed: $(cat out.txt)"

# A failed test is recorded and not retried, like a training; the training is kept.
cat >>fails.yaml <<'END'
test: { source: corpus/valid.de, reference: corpus/valid.en, beam: 1 }
END
mkdir kept
mv mixed/bad/seed-1/checkpoint_*.safetensors kept/
code=0
"$TARN" sweep fails.yaml --output mixed >out.txt 2>error.txt || code=$?
[ $code -eq 1 ] && grep -q '^failed .*bad seed 1' out.txt || fail "a test without a checkpoint: $code, $(cat out.txt)"
grep -q '1 of 2 runs failed; --retry-failed tries them again' error.txt || fail "no word of the failure: $(cat error.txt)"
grep -q '"status": "finished"' mixed/bad/seed-1/result.json || fail "the training is not finished any more"
grep -q '"status": "failed"' mixed/bad/seed-1/test.json || fail "a failed test is not recorded"
mv kept/* mixed/bad/seed-1/
"$TARN" sweep fails.yaml --output mixed >out.txt 2>error.txt && fail "a failed test is tried again unasked"
[ "$(grep -c '^skipped' out.txt)" -eq 2 ] || fail "a failed test is tried again unasked: $(cat out.txt)"
"$TARN" compare mixed >out.txt 2>error.txt || fail "a failed test keeps from comparing: $(cat error.txt)"
"$TARN" sweep fails.yaml --output mixed --retry-failed >out.txt || fail "--retry-failed of a test: $(cat out.txt)"
grep -q '^finished .*bad seed 1.*test BLEU' out.txt && ! grep -q '^started' out.txt || fail "--retry-failed of a test: $(cat out.txt)"

# Scores of another test set are not the sweep's.
"$TARN" test mixed/good/seed-1 --source corpus/valid.de --reference corpus/valid.de --beam 1 --quiet
refuse 1 "their test BLEU has other references" "$TARN" compare mixed
"$TARN" sweep --output mixed >out.txt || fail "another test: $(cat out.txt)"
grep -q '^finished .*good seed 1.*test BLEU' out.txt || fail "the test is not made anew: $(cat out.txt)"
grep -q '"reference": "corpus/valid.en"' mixed/good/seed-1/test.json || fail "the test is not made anew"

# Invalid files.
bad() {  # PATTERN SED-SCRIPT
  sed "$2" sweep.yaml >bad.yaml
  refuse 2 "$1" "$TARN" sweep bad.yaml --dry-run
}
bad 'bad.yaml:13: unknown key "layer" in encoder; did you mean "layers"' 's/half: { encoder.layers/half: { encoder.layer/'
bad 'bad.yaml:7: unknown key "max_update" in train; did you mean "max_updates"' 's/max_updates/max_update/'
bad 'bad.yaml:5: unknown key "thread"; did you mean "threads"' 's/^threads/thread/'
bad 'bad.yaml:13: key "regular" is given twice' 's/^  half:/  regular:/'
bad 'the variants regular and half are the same configuration' 's/^  half:.*/  half: { encoder.layers: L*2 }/'
bad 'bad.yaml:3: seeds: 2 is given twice' 's/^seeds.*/seeds: [1, 2, 2]/'
bad 'bad.yaml:3: seeds: expected a whole number' 's/^seeds.*/seeds: [1, x]/'
bad 'bad.yaml:1: baseline is missing' '/^baseline/d'
bad 'bad.yaml:2: unknown variant in baseline "halv"; did you mean "half"' 's/^baseline.*/baseline: halv/'
bad 'bad.yaml:1: base is missing' '/^base:/d'
bad 'variants: there are none' '/^variants/,$d'
bad 'bad.yaml:3: budget: expected a time' 's/^seeds.*/budget: 10/'
bad 'bad.yaml:3: budget: expected a time' 's/^seeds.*/budget: -3 min/'
bad 'unknown equalize "flop"; did you mean "flops"' 's/equalize: flops/equalize: flop/'
bad 'train.seed is not set here' 's/train.*max_updates/train: { seed: 3, max_updates/'
bad 'is not a name of a variant' 's/^  half:/  ..\/half:/'
bad 'bad.yaml:13: "lock" is not a name of a variant: the sweep has a file of that name' 's/^  half:/  lock:/'
bad 'bad.yaml:13: key "encoder.layers" is given twice, nested and joined by dots' 's/^  half:.*/  half: { encoder.layers: L, encoder: { layers: L*3 } }/'
bad 'train.max_minutes is not set here' 's/^seeds.*/seeds: [1]\nbudget: 1 h/; s/max_updates: 6/max_minutes: 6/'
sed 's/corpus.valid.en/corpus\/train.en/' sweep.yaml >bad.yaml
refuse 1 "test: .*20.*300" "$TARN" sweep bad.yaml --dry-run
sed 's/equalize: flops }/equalize: flops, data.train: nowhere }/' sweep.yaml >bad.yaml
refuse 1 "bad.yaml: variant flops: data.train: nowhere.tarn" "$TARN" sweep bad.yaml --dry-run
sed 's/equalize: flops }/equalize: flops, data.valid: nowhere }/' sweep.yaml >bad.yaml
refuse 1 "bad.yaml: variant flops: data.valid: nowhere.tarn" "$TARN" sweep bad.yaml --dry-run
sed 's/^base:.*/base: gone.yaml/' sweep.yaml >bad.yaml
refuse 1 "bad.yaml:1: base: gone.yaml" "$TARN" sweep bad.yaml --dry-run
refuse 2 "output DIR is missing" "$TARN" sweep sweep.yaml
# A warning, not a failure.
sed 's/^threads.*/threads: 3000/' sweep.yaml >many.yaml
"$TARN" sweep many.yaml --dry-run >out.txt 2>error.txt || fail "too many threads are refused"
grep -q 'warning: 2 runs of 3000 threads at a time' error.txt || fail "no warning: $(cat error.txt)"

# The examples are sweeps, on any data. Under sanitizers the dry runs above read what these do.
if [ -z "${TARN_SANITIZED:-}" ]; then
  mkdir -p parallel
  for side in de en; do
    cp corpus/train.$side corpus/valid.$side parallel/
    cp corpus/valid.$side parallel/test.$side
  done
  run="$TARN_SOURCE_DIR/examples/experiments/run.sh"
  PIECES=150 TARN=$TARN bash "$run" data parallel results >out.txt 2>&1 || fail "preparing: $(cat out.txt)"
  refuse 2 "there is no sweep modles; there are: backskip " env TARN="$TARN" bash "$run" modles parallel results
  refuse 2 "results/data was made of .* with 150 pieces, not of .* with 4000 pieces" \
    env TARN="$TARN" bash "$run" data parallel results
  refuse 2 "holds none of these in both de and fr: train" env TARN="$TARN" bash "$run" models parallel other de fr
  cd results
  for file in "$TARN_SOURCE_DIR"/examples/experiments/*.yaml; do
    [ "$(basename "$file")" = base.yaml ] && continue
    "$TARN" sweep "$file" --dry-run >out.txt 2>error.txt || fail "$file: $(cat error.txt)"
    grep -q 'runs, .* of them to be trained' out.txt || fail "$file: $(cat out.txt)"
  done
  cd ..
fi

# Each run may start from the body of its own seed, wherever {seed} stands; one body for all may have a number in its path.
short=(--quiet --set train.max_updates=2 --set train.log_every=1 --set valid.every=2 --set "encoder.layers=L*2")
"$TARN" train model.yaml --run start/seed-1 "${short[@]}" 2>error.txt || fail "a body: $(cat error.txt)"
cp -r start/seed-1 of-1-1 && cp -r start/seed-1 of-2-2
for body in 'start/seed-1' 'of-{seed}-{seed}'; do
  printf 'base: model.yaml\nbaseline: plain\nseeds: [1, 2]\nset: { train.max_updates: 3, valid.every: 3, encoder.layers: L*2 }\nvariants:\n  plain: { train.init_from: "%s" }\n  other: { train.init_from: "%s", train.lr: 0.001 }\n' "$body" "$body" >bodies.yaml
  rm -rf bodies
  "$TARN" sweep bodies.yaml --output bodies >out.txt 2>error.txt || fail "bodies $body: $(cat out.txt error.txt)"
  "$TARN" compare bodies --json | jq -e '[.configurations[] | .runs | length] == [2, 2]' >/dev/null || fail "bodies $body are not one configuration"
done
grep -q 'init_from: "of-2-2"' bodies/plain/seed-2/config.yaml || fail "another body: $(grep init_from bodies/plain/seed-2/config.yaml)"
