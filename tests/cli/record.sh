#!/usr/bin/env bash
# tarn record keeps what comparisons need of a sweep: the verdicts from the record are those of the sweep, without its
# translations and references; runs of another corpus, damaged logs and other sweeps are refused; and scripts/results.sh
# makes pages of records and says when a page differs.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"
. "$(dirname "$0")/../tested_runs.sh"

shares=(0.200 0.201 0.203)
for seed in 1 2 3; do
  run regular $seed "${shares[seed - 1]}" L*3
  run other $seed 0.$((9 + seed)) 'R*2 L'
done
description() {  # VARIANT...: sweep.json
  local list
  list=$(printf ', {"name": "%s", "set": {}, "equalized": null}' "$@")
  cat >sweep/sweep.json <<END
{"version": "0.1.0", "name": "claim", "baseline": "regular", "budget_seconds": 120.0, "clock": "wall",
 "variants": [${list:2}], "seeds": [1, 2, 3], "parallel": 1, "threads": 2, "test": {"source": "test.de", "reference": "test.en", "beam": 5}}
END
}
description regular other
echo "base: base.yaml" >sweep/sweep.yaml
echo "model: {}" >sweep/base.yaml
mv sweep/other/seed-3 late
touch sweep/other/seed-2/checkpoint_last.safetensors

"$TARN" record sweep --output kept >out.txt || fail "record"
[ "$(cat out.txt)" = "kept: added 5 runs, 0 already recorded; 1 unfinished" ] || fail "$(cat out.txt)"
mv late sweep/other/seed-3
"$TARN" record sweep --output kept --json >out.txt || fail "record again"
[ "$(cat out.txt)" = '{"added":1,"kept":5,"differing":0,"untested":0,"missing":0}' ] || fail "$(cat out.txt)"
[ "$(cd kept && find . -type f ! -name lock | sed 's/seed-./seed-N/; s|./[a-z]*/seed|VARIANT/seed|' | sort -u | tr '\n' ' ')" = \
  "./base.yaml ./sweep.json ./sweep.yaml VARIANT/seed-N/config.yaml VARIANT/seed-N/log.jsonl VARIANT/seed-N/result.json VARIANT/seed-N/test.bleu VARIANT/seed-N/test.json " ] ||
  fail "files: $(cd kept && find . -type f)"
[ "$(wc -l <kept/other/seed-2/test.bleu)" -eq 301 ] || fail "a line a sentence"

# A test that failed there is replaced by one that did not, and not the other way round.
failed='{"version": "0.1.0", "status": "failed", "message": "no memory"}'
cp -r sweep untested && echo "$failed" >untested/other/seed-2/test.json && rm untested/other/seed-2/test.hyp
"$TARN" record untested --output kept --json | grep -q '"added":0,"kept":6' || fail "a failed test replaces scores"
echo "$failed" >kept/other/seed-2/test.json && rm kept/other/seed-2/test.bleu
"$TARN" record sweep --output kept --json | grep -q '"added":1,"kept":5' || fail "a failed test stays"

# A queue says which run keeps it from a look.
cp -r kept planned && rm planned/other/seed-1/test.json planned/other/seed-1/test.bleu
jq '.sequential = {first: 3, max_seeds: 3, looks: [3], measure: "test_bleu", alpha: 0.05, spending: "obrien-fleming", equivalence: 0, futility: 0.1}' \
  kept/sweep.json >planned/sweep.json
cp kept/regular/seed-1/config.yaml planned/base.yaml
cat >planned/sweep.yaml <<'END'
base: base.yaml
baseline: regular
seeds: [1, 2, 3]
test: { source: test.de, reference: test.en }
sequential: { max_seeds: 3 }
variants:
  regular: {}
  other: { encoder.layers: R*2 L }
END
refuse 1 'left out: planned/other/seed-1: the run is finished, but has no test.json' "$TARN" sweep --queue planned --output queue --dry-run --quiet

# The same verdict from the record, elsewhere, without the references; chrF has none.
verdicts() { "$TARN" compare "$1" --json | jq '[.configurations[] | {name, test_bleu, verdict: .verdicts.test_bleu, best: .verdicts.best}]'; }
verdicts sweep >sweep.verdicts
mkdir away && mv kept away/ && mv test.en hidden.en
verdicts away/kept >kept.verdicts
diff sweep.verdicts kept.verdicts || fail "other verdicts"
grep -q '"decision": "better"' kept.verdicts || fail "nothing decided: $(cat kept.verdicts)"
"$TARN" compare away/kept | grep -q 'have a test chrF, but' || fail "no note about chrF"
mv hidden.en test.en && mv away/kept kept
"$TARN" record kept --output copy >out.txt || fail "a record of a record"
diff -r --exclude lock kept copy || fail "the copy differs"

# Damaged records.
cp -r kept damaged
sed -i '7s/.*/1 2 3/' damaged/other/seed-1/test.bleu
refuse 1 'test.bleu:7: expected 10 whole numbers' "$TARN" compare damaged
cp kept/other/seed-1/test.bleu damaged/other/seed-1/test.bleu
sed -i '$d' damaged/other/seed-1/test.bleu
mv test.en hidden.en
refuse 1 'it has 299 sentences' "$TARN" compare damaged
cp kept/other/seed-2/test.bleu damaged/other/seed-1/test.bleu
refuse 1 'do not belong together' "$TARN" compare damaged
mv hidden.en test.en

# What must not be mixed.
cp -r sweep another
sed -i 's/"seconds": 120/"seconds": 121/' another/other/seed-1/result.json
"$TARN" record another --output kept >out.txt 2>error.txt || fail "another machine's run"
grep -q 'added 0 runs, 5 already recorded, 1 recorded with another result' out.txt || fail "$(cat out.txt)"
grep -q 'another result of this run, which it keeps: kept/other/seed-1' error.txt || fail "$(cat error.txt)"
sed -i 's/"clock": "wall"/"clock": "cpu"/' another/sweep.json
refuse 2 'another and kept differ in "clock"' "$TARN" record another --output kept
description regular
refuse 2 'kept has runs of the variant other, which sweep lacks' "$TARN" record sweep --output kept
description regular other
sed -i 's/"clock": "wall"/"clock": "wall", "data_hash": "aa"/' sweep/other/seed-1/result.json
sed -i 's/"clock": "wall"/"clock": "wall", "data_hash": "bb"/' sweep/other/seed-2/result.json
refuse 1 'sweep/other/seed-1 and sweep/other/seed-2 were trained on other data' "$TARN" record sweep --output fresh
sed -i 's/, "data_hash": "aa"//' sweep/other/seed-1/result.json
mkdir parts
cp -r sweep parts/first && rm -r parts/first/other/seed-[13] && cp -r sweep parts/second && rm -r parts/second/other/seed-[12]
sed -i 's/"clock": "wall"/"clock": "wall", "data_hash": "cc"/' parts/second/other/seed-3/result.json
"$TARN" record parts/first --output fresh >out.txt || fail "a part"
refuse 1 'fresh/other/seed-2 and parts/second/other/seed-3 were trained on other data' "$TARN" record parts/second --output fresh
sed -i 's/, "data_hash": ".."//' parts/second/other/seed-3/result.json sweep/other/seed-*/result.json
sed -i 's/d_model: 16/d_model: 32/' parts/second/other/seed-3/config.yaml
refuse 2 'parts/second/other/seed-3 and fresh/other/seed-2 have other configurations' "$TARN" record parts/second --output fresh
[ ! -e fresh/other/seed-3 ] || fail "something was written"
refuse 2 'it is the folder of a sweep and no record' "$TARN" record parts/first --output sweep
refuse 2 'it is no sweep' "$TARN" record nowhere --output empty
[ ! -e empty ] || fail "a folder of nothing"
sed -i 's/"status": "finished"/"status": "finished", "log": {"bytes": 1, "hash": "0000000000000000"}/' sweep/other/seed-1/result.json
refuse 1 'sweep/other/seed-1/log.jsonl is not the one of the training' "$TARN" record sweep --output fresh
refuse 2 'it is no sweep' "$TARN" record sweep/other/seed-2 --output fresh
refuse 2 'a sweep cannot be its own record' "$TARN" record sweep --output sweep
refuse 2 'output is missing' "$TARN" record sweep

# Pages.
mkdir results documents
mv kept results/claim
printf '# Does it matter?\n\nMore layers.\n' >results/claim/question.md
printf 'other\t12.3\n' >results/claim/published.tsv
printf 'Before.\n\n<!-- results/claim -->\n<!-- end -->\n\nAfter.\n' >documents/page.md
pages() { TARN_RESULTS=$PWD/results TARN_DOCUMENTS=$PWD/documents TARN_RECIPES=$PWD/recipes "$TARN_SOURCE_DIR/scripts/results.sh" "$@"; }
! pages --check >out.txt 2>error.txt || fail "pages that are not there pass"
pages >out.txt || fail "pages"
[ "$(wc -l <out.txt)" -eq 2 ] || fail "two files: $(cat out.txt)"
pages --check || fail "what it wrote differs"
grep -q '^6 runs. Test BLEU, against regular (p corrected for 1 comparisons): better: other; worse: none; undecided: 0.$' results/claim/README.md ||
  fail "$(cat results/claim/README.md)"
grep -Eq '^\| other \| 2 of 4 \| 0.000 M \| 0.000 M \| 3 \| .* \| 12.3 \|$' results/claim/README.md || fail "$(cat results/claim/README.md)"
[ "$(sed -n '1p;$p' documents/page.md | tr '\n' ' ')" = "Before. After. " ] || fail "$(cat documents/page.md)"
grep -q 'better: other' documents/page.md || fail "$(cat documents/page.md)"
sed -i 's/better: other/better: none/' documents/page.md
! pages --check >out.txt 2>error.txt || fail "a changed document passes"
grep -q 'page.md is not what its records say' error.txt || fail "$(cat error.txt)"
# A quote of some variants is a table of these and the baseline.
printf '<!-- results/claim: other -->\n<!-- end -->\n' >documents/page.md
pages >out.txt || fail "rows"
grep -Eq '^\| regular \| 4 \| 0 \| 0.00 M \| - \| [0-9.]+ ± [0-9.]+ \|  \|  \|$' documents/page.md || fail "$(cat documents/page.md)"
grep -Eq '^\| other \| 2 \| 2 \| 0.00 M \| - \| [0-9.]+ ± [0-9.]+ \| [0-9.]+ \([0-9.]+ to [0-9.]+\) \| .*[0-9] \|$' documents/page.md || fail "$(cat documents/page.md)"
sed -i 's/claim: other/claim: othre/' documents/page.md
! pages >out.txt 2>error.txt || fail "an unknown variant passes"
grep -q 'no variant othre' error.txt && grep -q 'page.md quotes othre of results/claim$' error.txt || fail "$(cat error.txt)"
# All questions, with those that have not begun.
mkdir results/plan
printf '# What next?\n' >results/plan/question.md
printf '<!-- results -->\n<!-- end -->\n' >documents/page.md
pages >out.txt || fail "all questions"
[ "$(grep -c '^| \[' documents/page.md)" -eq 2 ] && grep -qxF '| [Does it matter?](../results/claim/README.md) | 6 of 6 finished |' documents/page.md &&
  grep -qxF '| [What next?](../results/plan/question.md) | not begun |' documents/page.md || fail "$(cat documents/page.md)"
# Figures about quality are quotes, or say where they come from.
said() {
  printf '%s\n' "$@" >documents/page.md
  pages --check >out.txt 2>error.txt
}
! said 'It has 31.7 BLEU.' '' 'A BLEU of about 39.' '' 'Its accuracy' 'is 73 %.' '' '- one: two' '- three: a perplexity of 4.5' '' '| model | nll |' \
  '| --- | --- |' '| a | 1.25 |' '' '<!-- figures: a paper -->' '' 'It has 31.8 BLEU.' '# Next' 'It has 31.9 BLEU.' || fail "figures without a source pass"
[ "$(sed -n 's/.*page.md:\([0-9]*\): .*/\1/p' error.txt | tr '\n' ' ')" = "1 3 6 9 13 19 " ] && grep -q 'page.md has figures about quality' error.txt || fail "$(cat error.txt)"
said '    31.7 BLEU' '' 'BLEU has a p of its own. It takes 2.5 seconds.' 'sacreBLEU 2.6.0 prints `BLEU 31.7`.' '<!-- figures: a paper -->' 'It has 31.8 BLEU.' ||
  fail "no figure about quality, or one with a source: $(cat error.txt)"
# Expected scores of a recipe; this record has none of the kind.
mkdir recipes
printf 'expected:\n  scores: [1]\n  from: results/claim, other\n' >recipes/own.yaml
! said 'Nothing.' || fail "scores that the record has not"
grep -q 'own.yaml has its scores from claim, other$' error.txt || fail "$(cat error.txt)"
sed -i 's/, other/, othre/' recipes/own.yaml
! said 'Nothing.' || fail "a recipe names no variant of its record"
rm -r documents/page.md recipes results/plan
pages --check || fail "no document quotes a record"
exit 0
