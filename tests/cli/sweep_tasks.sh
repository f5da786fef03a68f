#!/usr/bin/env bash
# Sweeps of classifiers and language models: grids of values, whose best point in validation represents its variant,
# tests with labels and of texts, and the output of tarn compare and tarn report.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"

awk 'BEGIN {
  srand(7); split("b c d e f g", w, " "); print "text\tlabel"
  for (i = 0; i < 300; i++) {
    has = rand() < 0.5; line = has ? "a" : "b"
    for (k = 0; k < 3 + int(rand() * 4); k++) line = line " " w[1 + int(rand() * 6)]
    print line "\t" (has ? "good" : "bad")
  }
}' >all.tsv
head -n 201 all.tsv >train.tsv
{ head -n 1 all.tsv; tail -n 100 all.tsv | head -n 50; } >valid.tsv
{ head -n 1 all.tsv; tail -n 50 all.tsv; } >test.tsv
tail -n +2 train.tsv | cut -f1 >text
"$TARN" vocab --type whitespace --size 40 --mask-symbols --output v text >/dev/null
p() { "$TARN" prepare --vocab v "$@" >/dev/null; }
p --table train.tsv --text text --labels label --output train
p --table valid.tsv --text text --labels label --labels-from train --output valid
p --table test.tsv --text text --labels label --labels-from train --output test
p --text text --output plain
cat >base.yaml <<'END2'
model: { task: classification, d_model: 8, max_length: 16, dropout: 0, norm: pre }
encoder: { layers: "L*1" }
kinds: { L: { mixer: attention, heads: 2, ffn: 16 } }
data: { vocab: v, train: train, valid: valid }
train: { max_updates: 30, warmup: 2, schedule: linear, label_smoothing: 0, max_tokens: 200, tensorboard: no }
valid: { every: 10, metric: accuracy }
END2
cat >labels.yaml <<'END2'
base: base.yaml
baseline: all
seeds: [1, 2]
parallel: 2
threads: 1
grid: { train: { lr: [0.000001, 0.02] } }
test: { labelled: test }
variants:
  all: {}
  head: { train.freeze: { embeddings: 0, encoder.layer1: 0 }, grid: { train.lr: [0.000001, 0.01], train.warmup: [1, 3] } }
  fixed: { grid: , train.lr: 0.01 }
END2
"$TARN" sweep labels.yaml --output labels --quiet
for name in all+lr-0.000001 all+lr-0.02 head+lr-0.01+warmup-3 fixed; do
  grep -q '"accuracy": {' "labels/$name/seed-2/test.json" || fail "no test of $name"
done
[ "$(ls -d labels/*/ | wc -l)" = 7 ] || fail "variants: $(ls labels)"
grep -q '^  lr: 0.01$' labels/head+lr-0.01+warmup-3/seed-1/config.yaml && grep -q '^  warmup: 3$' labels/head+lr-0.01+warmup-3/seed-1/config.yaml ||
  fail "a point of the grid: $(cat labels/head+lr-0.01+warmup-3/seed-1/config.yaml)"
"$TARN" sweep --output labels >again.txt
[ "$(grep -c '^skipped' again.txt)" = 14 ] || fail "it did not go on: $(cat again.txt)"
grep -q 'test accuracy 0\.[0-9]* ' again.txt || grep -q 'test accuracy' again.txt || fail "the tests: $(cat again.txt)"

# The best point has the variant's name, and a note lists the others; the measure is that of model selection.
"$TARN" compare labels >out.txt
grep -q '^valid/accuracy over T' out.txt || fail "measure: $(head -n 1 out.txt)"
grep -qE '^all \(baseline\) +2 ' out.txt || fail "baseline: $(cat out.txt)"
grep -q 'test accuracy' out.txt && ! grep -q 'BLEU' out.txt || fail "heads: $(cat out.txt)"
grep -qE '^note: all: train.lr=0.02, best of a grid of 2 by validation through tarn sweep \(accuracy [01]\.[0-9]+; train.lr=0.000001: 0\.[0-9]+\)' out.txt ||
  fail "the note: $(grep note out.txt)"
grep -qE '^note: head: train.lr=0.01 train.warmup=[13], best of a grid of 4 ' out.txt || fail "the note: $(grep note out.txt)"
! grep -q '^all+lr' out.txt || fail "a point that was not chosen has a row: $(cat out.txt)"
# A point with a failed seed ranks after those without failures, whatever its other seeds score.
cp -r labels unstable
sed -i 's/"status": "finished"/"status": "failed", "message": "it diverged"/' unstable/all+lr-0.02/seed-2/result.json
"$TARN" compare unstable >out.txt
grep -qE '^note: all: train.lr=0.000001, best of a grid of 2 .*; train.lr=0.02: [01]\.[0-9]+, but 1 of 2 runs failed\)' out.txt ||
  fail "a point with a failed run: $(grep note out.txt)"
"$TARN" compare labels --json | jq . >out.json
grep -q '"test_measure": "accuracy"' out.json && grep -q '"grid": "train.lr=0.02"' out.json || fail "$(cat out.json)"
# The score of the table is the mean of the two tests.
mean=$(sed -n '/"accuracy": {/,/}/s/.*"value": \([0-9.]*\).*/\1/p' labels/fixed/seed-*/test.json | awk '{ s += $1 } END { printf "%.6f", s / NR }')
awk -v mean="$mean" '/"name": "fixed"/ { on = 1 } on && /"test_score": \{/ { getline; gsub(/[^0-9.]/, ""); same = $0 - mean < 1e-5 && mean - $0 < 1e-5; exit }
  END { exit !same }' out.json ||
  fail "test_score of fixed is not $mean"
"$TARN" report labels --output report >/dev/null
grep -q 'test accuracy' report/report.html && grep -q 'best of a grid' report/report.md || fail "the report says nothing of test or grid"
! grep -qE 'BLEU|perplexity|bits' report/report.html || fail "words of other tasks: $(grep -oE '.{30}(BLEU|perplexity|bits).{30}' report/report.html | head -n 3)"
head -n 1 report/results.csv | grep -q 'test_score_mean' || fail "results.csv"
grep -q ',accuracy,' report/runs.csv || fail "runs.csv has no test measure"

# Language models: bits of a text, equal to tarn score.
tr ' ' '\n' <text | head -n 300 | tr '\n' ' ' | fold -w 40 >test.txt
"$TARN" vocab --type byte --output bytes >/dev/null
"$TARN" prepare --vocab bytes --text text --stream 16 --output stream >/dev/null
cat >lm.yaml <<'END2'
model: { d_model: 8, max_length: 16, dropout: 0, norm: pre }
decoder: { layers: "L*1" }
kinds: { L: { mixer: attention, heads: 2, ffn: 16 } }
data: { vocab: bytes, train: stream, valid: stream }
train: { max_updates: 10, warmup: 2, label_smoothing: 0, max_tokens: 200, tensorboard: no }
valid: { every: 5, metric: bpb }
END2
cat >text.yaml <<'END2'
base: lm.yaml
baseline: slow
seeds: [1, 2]
threads: 1
test: { text: test.txt, window: 16, stride: 8 }
variants: { slow: { train.lr: 0.001 }, fast: { train.lr: 0.01 } }
END2
"$TARN" sweep text.yaml --output texts --quiet
bits=$("$TARN" score texts/fast/seed-1 test.txt --window 16 --stride 8 --summary-only --json 2>/dev/null | sed 's/.*"bits_per_byte":\([0-9.]*\).*/\1/')
grep -q "\"bpb\": ${bits:0:8}" texts/fast/seed-1/test.json || fail "tarn score says $bits, the test $(grep bpb texts/fast/seed-1/test.json)"
"$TARN" compare texts >out.txt
grep -q 'test bpb' out.txt || fail "$(cat out.txt)"
"$TARN" test texts/slow/seed-1 --text test.txt --overlong truncate --quiet
refuse 1 'tested on other data' "$TARN" compare texts
"$TARN" sweep --output texts --quiet
"$TARN" compare texts >/dev/null || fail "the sweep did not repeat its own test"

bad() {  # LINE MESSAGE EDIT: one change of labels.yaml
  sed "$3" labels.yaml >bad.yaml
  refuse 2 "bad.yaml:$1.*$2" "$TARN" sweep bad.yaml --dry-run
}
bad 6 'grid: train.lr: expected a list' 's/\[0.000001, 0.02\]/0.1/'
bad 6 'grid: expected keys and lists' 's/^grid: .*/grid: [1, 2]/'
bad 6 'train.seed is not set here' 's/^grid: .*/grid: { train.seed: [1, 2] }/'
bad 6 'grid: valid.metric: the points of a grid are compared by it' 's/^grid: .*/grid: { valid.metric: [accuracy, loss] }/'
bad 9 'two variants would be called' 's/0.000001, 0.02\]/0.1, 0.1]/'
bad 11 'train.lr is in the variant and in its grid' 's/grid: , //'
bad 7 'only one of source' 's/labelled: test/labelled: test, blimp: x/'
bad 7 'test.stride: is for test.text' 's/labelled: test/labelled: test, stride: 4/'
bad 7 'test.beam: only translation' 's/labelled: test/labelled: test, beam: 4/'
bad 7 'did you mean "labelled"' 's/labelled: test/labeled: test/'
sed 's/labelled: test/labelled: plain/' labels.yaml >bad.yaml
refuse 1 'test: labelled: plain.*no labels' "$TARN" sweep bad.yaml --dry-run
sed 's/labelled: test/text: test.txt/' labels.yaml >bad.yaml
refuse 2 'test: the variant .* text is for language models' "$TARN" sweep bad.yaml --dry-run
sed 's/test: { text/set: { grid: 3 }\ntest: { text/' text.yaml >bad.yaml
refuse 2 'bad.yaml:5: grid is no key of a configuration' "$TARN" sweep bad.yaml --dry-run
sed 's/test.txt, window: 16/nowhere, window: 4/' text.yaml >bad.yaml
refuse 2 'bad.yaml:5: test.stride: at most test.window' "$TARN" sweep bad.yaml --dry-run
sed 's/test.txt/nowhere/' text.yaml >bad.yaml
refuse 1 'test: text: nowhere: cannot be read' "$TARN" sweep bad.yaml --dry-run
refuse 2 '--window and --stride are for --text' "$TARN" test texts/fast/seed-1 --blimp x --stride 3
