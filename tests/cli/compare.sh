# tarn compare on runs of tarn train: tables, JSON, refusals. tests/unit/test_results.c checks the numbers.
. "$(dirname "$0")/../tiny_run.sh"

sed -i 's/max_updates: 60/max_updates: 12/; s/threads: 2/threads: 1/; s/every: 20/every: 6/
  s/save_every: 10/save_every: 10, core_watts: 10, co2_per_kwh: 400/' model.yaml

for seed in 1 2; do
  "$TARN" train model.yaml --run runs/shared/seed-$seed --quiet --set train.seed=$seed --set valid.at_start=yes ||
    fail "training"
  "$TARN" train model.yaml --run runs/regular/seed-$seed --quiet --set train.seed=$seed --set encoder.layers=L*2 ||
    fail "training"
  for run in runs/shared/seed-$seed runs/regular/seed-$seed; do
    "$TARN" test $run --source corpus/valid.de --reference corpus/valid.en >/dev/null || fail "test of $run"
  done
done

"$TARN" compare runs | grep -q "note: no run has a budget (train.max_minutes): they are compared over .* minutes, the time of the longest" ||
  fail "compare without a budget"
"$TARN" compare runs --budget 5 --baseline regular >table.txt || fail "compare"
for part in "valid/bleu over T = 5 minutes of training (wall clock)" "regular (baseline)" "(R1 L1)\*2" "2+1 of 4+1" \
  "AUCC bleu·min" "^test BLEU against regular$" "^costs .*J/epoch .*kJ to best .*CO2 g .*MFLOP/token .*TFLOP to best .*GB moved" "note: energy is an estimate" \
  "no verdict (two seeds)" "^losses .*min train" \
  "^times .*same updatable.*same depth" "note: BLEU is taken as 0 at time 0, where 2 runs did not validate"; do
  grep -q -- "$part" table.txt || fail "no \"$part\" in: $(cat table.txt)"
done
# Columns are aligned: the last cells of a table end in the same column.
for head in scores times losses costs sizes configuration; do
  widths=$(sed -n "/^$head /,/^$/p" table.txt | grep . | grep -v '^note\|^best\|^AUCC\|^test' | wc -L)
  [ "$widths" -le 130 ] || fail "the table $head is $widths wide: $(cat table.txt)"
done
[ "$(sed -n '/^scores /,/^$/p' table.txt | grep . | while IFS= read -r line; do
  printf '%s' "$line" | wc -m
done | sort -u | wc -l)" -eq 1 ] || fail "the table is not aligned: $(cat table.txt)"

# A run of another processor has no part in times.
cp -r runs mixed
sed -i 's/"processor": "[^"]*"/"processor": "other"/' mixed/regular/seed-2/result.json
"$TARN" compare mixed --baseline regular >mixed.txt || fail "compare with two processors"
grep -q "^times, energies, areas and memory of the runs on .* (.*, 1 thread) alone$" mixed.txt || fail "no processor: $(cat mixed.txt)"
grep -q "note: runs are of several processors (.*: 3, other (.*, 1 thread): 1), so times" mixed.txt || fail "no processors: $(cat mixed.txt)"
"$TARN" compare mixed --baseline regular --json |
  jq -e '.processor as $here | (.configurations[] | select(.baseline)) | ($here | test("1 thread")) and .best.runs == 2 and
    .aucc.runs == 1 and .epoch_seconds.runs == 1 and ([.runs[] | .elsewhere] == [false, true]) and .runs[1].processor == "other" and
    .runs[1].aucc == null' >/dev/null || fail "the processor is not in the JSON"

# From another folder the test's files are found relative to the folders above the runs; missing files are reported.
mkdir elsewhere
(cd elsewhere && "$TARN" compare ../runs --budget 5 --baseline regular) | sed "s,\.\./runs,runs,g" | diff table.txt - || fail "another folder, other tables"
mv corpus/valid.en corpus/gone
"$TARN" compare runs --budget 5 --baseline regular >gone.txt || fail "compare without references"
grep -q "note: 4 finished runs have a test BLEU, but its signature, their test.hyp or references are not there: their configurations get no verdict on it" gone.txt || fail "no note: $(cat gone.txt)"
mv corpus/gone corpus/valid.en

"$TARN" compare runs --budget 5 --json | jq . >table.json || fail "compare --json"
check() { jq -e "$1" table.json >/dev/null || fail "not in the JSON: $1"; }
if command -v jq >/dev/null; then
  check '.metric == "valid/bleu" and .budget_seconds == 300 and (.configurations | length) == 2'
  check '.configurations[] | select(.name == "shared") | .aucc.runs == 2 and .regular == "regular"'
  check '.configurations[] | select(.baseline == false) | .verdicts.test_bleu | .p == null and .low < .difference and .words == "no verdict (two seeds)" and (.seeds | length) == 2'
  check '.configurations[] | select(.name == "shared") | .min_train_loss.runs == 2 and .epoch_train_loss.mean > 0 and .regular_deep == null'
  check '.configurations[] | .joules.mean > 0 and .best_joules.mean <= .joules.mean and .token_operations.mean > 0'
  check '[.configurations[].runs[].energy_source == "estimate"] | all'
  # The difference is that of the means written by tarn test.
  for name in shared regular; do
    jq -s '[.[].bleu] | add / length' runs/$name/seed-*/test.json >$name.mean
  done
  jq -e --slurpfile a shared.mean --slurpfile b regular.mean '
    (.configurations[] | select(.baseline == false)) as $c | ($c.verdicts.test_bleu.difference | fabs) -
    ($a[0] - $b[0] | fabs) | fabs < 1e-6' table.json >/dev/null || fail "the difference is not that of the means"
fi
"$TARN" compare runs/shared --metric loss --budget 5 --resamples 0 >loss.txt || fail "compare by loss"
grep -q "areas are of its negative" loss.txt || fail "loss: $(cat loss.txt)"
"$TARN" compare runs --metric train/loss --budget 5 | grep -q "the first value of 4 runs stands for it" ||
  fail "compare by train/loss"

# Losses and BLEU each have their own validation data, and losses their label smoothing.
train_more() { "$TARN" train model.yaml --run "$@" --quiet --set valid.at_start=yes || fail "training $1"; }
train_more more/plain
train_more more/noloss --set valid.bleu=no --set train.lr=0.004
train_more more/smooth --set train.label_smoothing=0.3
train_more more/short --set model.max_length=9
compare_more() { "$TARN" compare more/plain "more/$1" --budget 5 --metric "$2" 2>&1; }
compare_more noloss loss | grep -q '^noloss' || fail "BLEU decides whether losses can be compared: $(compare_more noloss loss)"
refuse 1 "other label smoothing (0.1 and 0.3); compare nll" "$TARN" compare more/plain more/smooth --metric loss
compare_more smooth nll | grep -q '^smooth' || fail "nll"
compare_more smooth bleu | grep -q 'note: losses of .* are not to be compared: train.label_smoothing is' || fail "no note"
refuse 1 "of which model.max_length 1024 and 9 are taken" "$TARN" compare more/plain more/short --metric loss
# A link to a run is reported, not followed.
mkdir linked
cp -r more/plain linked/own
ln -s ../more/smooth linked/other
"$TARN" compare linked --budget 5 2>&1 | grep -q 'linked/other is a link to runs and is left out' || fail "a link is left out silently"

refuse 1 "valid.at_start: yes" "$TARN" compare runs --metric loss --budget 5
refuse 2 'did you mean "bleu"' "$TARN" compare runs --metric bluu --budget 1
refuse 2 'did you mean "regular"' "$TARN" compare runs --baseline reglar --budget 1
refuse 2 "there is no run in it" "$TARN" compare corpus
# A test of a different checkpoint than the rule selects is reported; so is one that differs from other runs' if the
# checkpoints are gone.
! grep -q 'of another checkpoint' table.txt || fail "a note on checkpoints too many: $(cat table.txt)"
cp -r runs tested
"$TARN" test tested/shared/seed-2 --source corpus/valid.de --reference corpus/valid.en --checkpoint last >/dev/null || fail "test"
"$TARN" compare tested --budget 5 >tested.txt || fail "compare of another checkpoint"
note="1 test is of another checkpoint than .tarn test. takes by itself, or than another run's test is of"
grep -q "note: $note: tested/shared/seed-2 (checkpoint_last.safetensors, not checkpoint_best.safetensors)$" tested.txt || fail "no note: $(cat tested.txt)"
"$TARN" compare tested --budget 5 --json | jq . | grep -q '"test_checkpoint": "checkpoint_last.safetensors"' || fail "not in the JSON"
"$TARN" report tested --budget 5 --output tested-report >printed.txt || fail "report of another checkpoint"
grep -q ',test_checkpoint,' tested-report/runs.csv || fail "no column: $(cat tested-report/runs.csv)"
grep -q '^shared,.*,2,tested/shared/seed-2,.*,checkpoint_last.safetensors,' tested-report/runs.csv || fail "no checkpoint: $(cat tested-report/runs.csv)"
grep -q '| checkpoint.*_last.safetensors |$' tested-report/report.md || fail "no checkpoint: $(cat tested-report/report.md)"
rm tested/*/*/checkpoint_*
"$TARN" compare tested --budget 5 | grep -q "note: $note: tested/shared/seed-2 (" || fail "no note without checkpoints"
refuse 2 "takes 0, or 40 to 1000000, resamples, not 39" "$TARN" compare runs --budget 5 --resamples 39
refuse 2 "takes 0, or 40 to 1000000, resamples, not 1" "$TARN" report runs --budget 5 --resamples 1 --output none
"$TARN" compare runs --budget 5 --resamples 0 | grep -q 'no verdict (no resamples)' || fail "no resamples, another reason"
refuse 1 "nowhere" "$TARN" compare nowhere
refuse 2 "is given twice" "$TARN" compare runs runs/shared/seed-1
refuse 2 "an argument is missing" "$TARN" compare
"$TARN" train model.yaml --run runs/lower --quiet --set valid.lowercase=yes || fail "training"
refuse 1 "signatures" "$TARN" compare runs --budget 5
rm -r runs/lower

# A log that lost a line since the training is reported, and so is one with which a training continued.
cp -r runs changed
sed -i 4d changed/shared/seed-1/log.jsonl
"$TARN" compare changed --budget 5 --json | jq . >changed.json || fail "compare of a changed log"
"$TARN" compare changed --budget 5 | grep -q 'note: changed/shared/seed-1: its log is not the one that the training wrote' || fail "a changed log is not said"
! "$TARN" compare runs --budget 5 | grep -q 'its log is not' || fail "a whole log is said to be changed"
grep -q '"log_changed": "' changed.json || fail "a changed log is not in the JSON"
"$TARN" report changed --budget 5 --output pages >printed.txt || fail "report of a changed log"
grep -q 'its log was changed: ' pages/report.html || fail "a changed log is not in the page"
grep -q ',log_changed,log_accepted,log_accepted_update,' pages/runs.csv || fail "no column"
# So is a description edited since then.
cp -r runs edited
echo '# later' >>edited/shared/seed-1/config.yaml
"$TARN" compare edited --budget 5 --json 2>error.txt | jq . >edited.json || fail "compare of an edited description"
[ ! -s error.txt ] || fail "$(cat error.txt)"
grep -q '"config_changed": "' edited.json || fail "an edited description is not in the JSON"
"$TARN" compare edited --budget 5 | grep -q 'note: edited/shared/seed-1/config.yaml is not the one that this run was trained with (its hash in result.json differs)' || fail "an edited description is not said"
"$TARN" report edited --budget 5 --output edited_pages >printed.txt || fail "report of an edited description"
grep -q 'its config.yaml was changed: ' edited_pages/report.html || fail "an edited description is not in the page"
grep -q ',its hash in result.json differs,' edited_pages/runs.csv || fail "an edited description is not in runs.csv"
rm -r edited edited_pages
"$TARN" train --resume changed/shared/seed-1 --accept-log --set train.max_updates=18 --quiet || fail "training"
"$TARN" compare changed --budget 5 | grep -q 'note: changed/shared/seed-1 went on at update 12 with a log that was not the training.s (--accept-log)' || fail "an accepted log is not said"

rm runs/*/result.json runs/*/*/result.json
refuse 2 "there is no finished run to compare: 0 failed, 4 unfinished" "$TARN" compare runs
exit 0
