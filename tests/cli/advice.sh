#!/usr/bin/env bash
# tarn plan --records: what records of experiments decide about freezing is recommended, and nothing else; the changes that
# it prints are those of the plan beside it; and folders of no use are named in one line.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"
. "$(dirname "$0")/../tested_runs.sh"

for seed in 1 2 3; do
  run regular $seed 0.20$seed L*4
  run frozen $seed 0.10$seed '(R L)*2'
  run half $seed 0.20$((4 - seed)) L*2
  run top $seed 0.40$seed 'L*2 R*2'
done
cat >sweep/sweep.json <<'END'
{"version": "0.1.0", "name": "claim", "baseline": "regular", "budget_seconds": 120.0, "clock": "wall", "variants": [
 {"name": "regular", "set": {}, "equalized": null}, {"name": "frozen", "set": {"encoder.layers": "(R L)*2"}, "equalized": null},
 {"name": "half", "set": {"encoder.layers": "L*2"}, "equalized": null}, {"name": "top", "set": {"encoder.layers": "L*2 R*2"}, "equalized": null}],
 "seeds": [1, 2, 3], "parallel": 1, "threads": 2, "test": {"source": "test.de", "reference": "test.en", "beam": 5}}
END
echo "base: base.yaml" >sweep/sweep.yaml
echo "model: {}" >sweep/base.yaml
"$TARN" record sweep --output kept >record.txt || fail "record"
mkdir empty planned && echo "base: base.yaml" >planned/sweep.yaml

cat >model.yaml <<'END'
model: { d_model: 32 }
encoder: { layers: A*6 }
decoder: { layers: A*2 }
kinds:
  A: { heads: 8, ffn: 64 }
END
advise() { "$TARN" plan model.yaml --vocab-size 100 --records "$@"; }
has() { grep -qxF -- "$1" advice.txt || fail "no line \"$1\": $(cat advice.txt)"; }
advise kept planned empty record.txt >advice.txt || fail "advice"
has 'records of experiments, for this model of the task translation (d_model 32, encoder A*6, decoder A*2, norm post)'
has 'kept: test BLEU against regular (d_model 16, encoder L*4, decoder L, norm post), trained for 100 updates, 1.0 epochs'
has 'warning: yours differs: d_model 32, not 16; encoder of 6 layers, not 4; decoder of 2 layers, not 1; text not compared, because yours was not read; trained for up to 50000 updates, not 100'
grep -Eq '^frozen +0\.00 .* 3 +\+[0-9.]+ +\[\+[0-9.]+, \+[0-9.]+\] +(< 0\.001|0\.0[0-4][0-9]) +better$' advice.txt || fail "frozen: $(cat advice.txt)"
grep -Eq '^half .* undecided$' advice.txt || fail "half: $(cat advice.txt)"
has 'frozen: 2 of 4 encoder layers frozen: (R L)*2'
has '- one form of freezing is decided as good: frozen (2 of 4 encoder layers frozen: (R L)*2), better, 1.00 of the trained parameters, 1.00 of the time of an update'
has '- worse: top'
has '- undecided, so not recommended (without a margin of equivalence only a better form can be decided as good): half'
has "frozen: --set 'kinds.R={ heads: 8, ffn: 64, frozen: yes }' --set 'encoder.layers=(R A)*3'"
has "half: --set 'encoder.layers=A*3'"
! grep -q '^top: --set' advice.txt || fail "what is worse is offered: $(cat advice.txt)"
has 'not applied to your model, because it is of 4 encoder layers, and its pattern has no form for your 6: top'
has 'not used: planned: none of its runs has begun'
has 'not used: empty: there is no record in it: it has no sweep.json, which names the baseline (tarn record makes one)'

# The same from the sweep, and as JSON; the changes make the model that is planned beside them.
advise sweep >sweep.txt || fail "advice from a sweep"
diff <(sed -n '/^form/,/^not applied/p' sweep.txt) <(sed -n '/^form/,/^not applied/p' advice.txt) || fail "a sweep is not its record"
advise kept planned --json >advice.json || fail "--json"
jq -e '.advice | .task == "translation" and .records[1].left_out == "none of its runs has begun" and (.records[0] |
  .fewest == "frozen" and .fastest == "frozen" and .shallower == null and .measure == "test_bleu" and .left_out == null and
  ([.forms[] | .decision] == ["better", "undecided", "worse"]) and .forms[2].applied == null and .forms[2].obstacle != null)' \
  advice.json >/dev/null || fail "JSON: $(cat advice.json)"
jq -e '.advice.planned.trained_parameters == .trained_parameters and .advice.planned.total_bytes == .total_bytes' advice.json >/dev/null ||
  fail "as it stands: $(cat advice.json)"
eval "set -- $(sed -n 's/^frozen: --set/--set/p' advice.txt)"
"$TARN" plan model.yaml --vocab-size 100 --json "$@" >frozen.json || fail "the changes are refused: $*"
jq -e --slurpfile plan frozen.json '.advice.records[0].forms[0].applied.plan | .frozen_parameters == $plan[0].frozen_parameters and
  .frozen_parameters > 0 and .trained_parameters == $plan[0].trained_parameters and .total_bytes == $plan[0].total_bytes' advice.json >/dev/null ||
  fail "another plan: $(cat frozen.json)"
# A run directory is a configuration too, and --set comes before the changes.
"$TARN" plan kept/regular/seed-1 --vocab-size 100 --set 'encoder.layers=L*8' --records kept --json >advice.json || fail "a run directory"
jq -e '.advice | .model.encoder == "L*8" and .records[0].forms[0].applied.set[1] == "encoder.layers=(RR L)*4"' advice.json >/dev/null ||
  fail "a run directory: $(cat advice.json)"

# With a design the margin counts: a model without these layers is as good, which is said first.
jq '.sequential = {first: 3, max_seeds: 3, looks: [3], measure: "test_bleu", alpha: 0.05, spending: "obrien-fleming", equivalence: 2, futility: 0.1}' \
  sweep/sweep.json >kept/sweep.json
advise kept >advice.txt || fail "a design"
grep -Eq '^form .* p +p equal +verdict$' advice.txt || fail "no p of equivalence: $(cat advice.txt)"
grep -Eq '^half .* 1\.000 +< 0\.001 +equivalent within 2$' advice.txt || fail "half: $(cat advice.txt)"
# In short, before the tables.
grep -qx -- '- kept recommends [a-z0-9, -]*' <(sed -n '/^in short, by 1 record/,/^$/p' advice.txt) || fail "in short: $(cat advice.txt)"
[ "$(sed '1,/^in short/d' advice.txt | sed '1,/^$/d' | grep '^- ' | cut -d: -f1 | head -n 2)" = "- leaving layers out is decided as good, and it is simpler than freezing
- one form of freezing is decided as good" ] ||
  fail "recommendation: $(cat advice.txt)"

# Bad input, a line each.
refuse 2 '--records needs folders of records' "$TARN" plan model.yaml --records
refuse 2 'unexpected argument "kept"' "$TARN" plan model.yaml kept
refuse 1 'missing: it cannot be found' advise kept missing
refuse 2 'empty says nothing about a model of the task translation: there is no record in it' advise empty
refuse 2 'none of the 2 folders says anything about a model of the task translation' advise empty planned
refuse 2 'planned says nothing about a model of the task translation: none of its runs has begun' advise planned
sed -i 's/"baseline": "regular", //' sweep/sweep.json
refuse 2 'sweep/sweep.json: it has no "baseline"' advise sweep
echo '{"kind":' >>kept/half/seed-2/log.jsonl
echo '{"kind":"valid"}' >>kept/half/seed-2/log.jsonl
refuse 1 'kept/half/seed-2/log.jsonl' advise kept
exit 0
