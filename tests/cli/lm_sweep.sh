# A sweep over language models: trained, tested on minimal pairs, compared; a reservoir with exploding states ends as a
# failed run. The examples for BabyLM, on a small text.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"

"$TARN" corpus --output corpus --sentences 400 --held-out 40
mkdir -p babylm/train babylm/dev blimp
cp corpus/train.en babylm/train/a.train
cp corpus/valid.en babylm/dev/a.dev
toy="$TARN_SOURCE_DIR/tests/golden/gpt2_toy"
run="$TARN_SOURCE_DIR/examples/babylm/run.sh"
# The good sentence of a pair is from the corpus, the bad one has its words reversed.
awk 'NR <= 30 { bad = ""; for (i = NF; i > 0; i--) bad = bad (i == NF ? "" : " ") $i
  printf "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\", \"field\": \"%s\"}\n", $0, bad, "order" }' corpus/valid.en >all
head -n 20 all >blimp/first.jsonl
tail -n 10 all >blimp/last.jsonl

TARN=$TARN bash "$run" data babylm "$toy" blimp results 1 >out.txt 2>&1 || fail "preparing: $(cat out.txt)"
TARN=$TARN bash "$run" data babylm 300 blimp pieces 1 >out.txt 2>&1 || fail "preparing with a vocabulary of its own: $(cat out.txt)"
grep -q "300 pieces of its own" pieces/data/ready || fail "pieces: $(cat pieces/data/ready)"
refuse 2 "there is no sweep model; there are: models" env TARN="$TARN" bash "$run" model babylm "$toy" blimp results
refuse 2 "results/data was made of every sentence in 1 of .*, not of every sentence in 3 of" \
  env TARN="$TARN" bash "$run" data babylm "$toy" blimp results 3
refuse 2 'SHARE is a whole number from 1, not "0"' env TARN="$TARN" bash "$run" data babylm "$toy" blimp results 0
refuse 2 "nowhere is no folder" env TARN="$TARN" bash "$run" models nowhere "$toy" blimp other
cd results
for sweep in models spectral-radius topologies; do
  "$TARN" sweep "$TARN_SOURCE_DIR/examples/babylm/$sweep.yaml" --dry-run >out.txt 2>error.txt || fail "$sweep: $(cat error.txt)"
done

cp "$TARN_SOURCE_DIR/examples/babylm/esn-i.yaml" .
cat >sweep.yaml <<'END'
base: esn-i.yaml
baseline: small
seeds: [1, 2]
parallel: 2
threads: 1
set:
  model.d_model: 32
  train: { max_updates: 20, max_epochs: 0, lr: 0.01 }
  valid: { every: 10, at_start: yes }
test: { blimp: data/blimp, precision: bf16 }
variants:
  small: {}
  fixed: { model.frozen_embeddings: decoder }
  wild: { kinds.E.spectral_radius: 900 }
END
sed 's/^test.*/test: { blimp: data }/' sweep.yaml >bad.yaml
refuse 1 "test: blimp: data: there is no file" "$TARN" sweep bad.yaml --dry-run
sed 's/^test.*/test: { blimp: data, source: x }/' sweep.yaml >bad.yaml
refuse 2 "bad.yaml:10: test: blimp is for language models" "$TARN" sweep bad.yaml --dry-run
sed 's/^test.*/test: { blimp: data, precision: bf61 }/' sweep.yaml >bad.yaml
refuse 2 'bad.yaml:10: unknown test.precision "bf61"; did you mean "bf16"' "$TARN" sweep bad.yaml --dry-run
sed 's/^test.*/test: { blimp: data, beam: 2 }/' sweep.yaml >bad.yaml
refuse 2 "bad.yaml:10: test.beam: blimp scores sentences" "$TARN" sweep bad.yaml --dry-run
got=0
# Through the example's script: it writes a report even if runs have failed.
mkdir ../own
cp "$TARN_SOURCE_DIR/examples/sweep.sh" ..
cp "$run" esn-i.yaml ../own
cp sweep.yaml ../own/spectral-radius.yaml
(cd .. && TARN=$TARN bash own/run.sh spectral-radius babylm "$toy" blimp results 1) >out.txt 2>error.txt || got=$?
mv spectral-radius runs
[ $got -eq 1 ] || fail "a sweep with failed runs ends with $got: $(cat error.txt)"
grep -q 'fixed seed 2.*BLiMP [0-9.]* %' out.txt || fail "no accuracy: $(cat out.txt)"
[ "$(grep -c '^failed *wild' out.txt)" -eq 2 ] || fail "wild does not fail: $(cat out.txt)"
"$TARN" blimp runs/small/seed-1 data/blimp --precision bf16 --quiet --json --output written.json >blimp.json
cmp blimp.json written.json || fail "--output and standard output differ"
refuse 1 'nowhere/x: cannot write' "$TARN" blimp runs/small/seed-1 data/blimp --output nowhere/x
share=$(jq .overall.accuracy blimp.json)
tested=$(sed -n 's/.*"blimp": \([0-9.]*\),.*/\1/p' runs/small/seed-1/test.json)
awk -v a="$share" -v b="$tested" 'BEGIN { exit !(a > 0 && 100 * a - b < 1e-6 && b - 100 * a < 1e-6) }' ||
  fail "test.json says $tested, tarn blimp $share"
grep -q '"precision": "bf16"' runs/small/seed-1/test.json || fail "no precision: $(cat runs/small/seed-1/test.json)"
grep -q '"last"' runs/small/seed-1/test.json || fail "no paradigms: $(cat runs/small/seed-1/test.json)"
"$TARN" compare runs >out.txt
grep -q 'BLiMP %' out.txt && grep -q 'wild.*0 of 2, 2 failed\|wild *0 of 2' out.txt || fail "compare: $(cat out.txt)"
grep -q 'the tests were computed in bf16' out.txt || fail "the precision of the tests is not told: $(cat out.txt)"
cd report-spectral-radius || fail "no report"
grep -q 'BLiMP (%)' report.md && grep -q wild report.md && grep -q test_blimp_mean results.csv || fail "the report does not say it"
cd ..
"$TARN" sweep --output runs >out.txt 2>error.txt || true
[ "$(grep -c '^skipped' out.txt)" -eq 6 ] || fail "finished and failed runs are not skipped: $(cat out.txt)"

refuse 2 "language model" "$TARN" test runs/small/seed-1 --source ../corpus/valid.en --reference ../corpus/valid.en
refuse 2 "either --source FILE and --reference FILE" "$TARN" test runs/small/seed-1 --blimp data/blimp --source x
# Changes to the pairs are reported and recorded.
mkdir odd
printf '{"sentence_good": "\\u00e9 a", "sentence_bad": "b\xff"}\n{"sentence_good": "a", "sentence_bad": "a"}\n' >odd/x.jsonl
cp -r runs/small/seed-1 tested
"$TARN" test tested --blimp odd >out.txt 2>error.txt || fail "odd pairs: $(cat error.txt)"
grep -qx 'invalid UTF-8 replaced in: 1 line' error.txt || fail "replaced: $(cat error.txt)"
grep -qx 'pairs of two equal sentences, which count as wrong: 1' error.txt || fail "equal: $(cat error.txt)"
tr -d ' \n' <tested/test.json | grep -q '"unknown":0,"truncated":0,"replaced":1,"equal":1,' || fail "$(cat tested/test.json)"
"$TARN" test tested --blimp odd --quiet >out.txt 2>error.txt || fail "odd pairs: $(cat error.txt)"
[ ! -s error.txt ] && [ ! -s out.txt ] || fail "--quiet says: $(cat error.txt out.txt)"
refuse 2 "--overlong is for --blimp" "$TARN" test tested --source x --reference x --overlong truncate
refuse 2 "did you mean truncate" "$TARN" test tested --blimp odd --overlong truncat
refuse 2 "takes no --beam" "$TARN" test runs/small/seed-1 --blimp data/blimp --beam 0
