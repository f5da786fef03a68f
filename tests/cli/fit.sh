#!/usr/bin/env bash
# tarn fit: laws of a sweep's runs, its output, its figure and its refusals.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

cat >sweep.yaml <<'END'
base: model.yaml
baseline: regular-8
seeds: [1, 2]
threads: 1
set:
  train: { max_updates: 30, keep_last: 1, log_every: 10 }
  valid: { every: 10, max_sentences: 2 }
variants:
END
for width in 8 16 24 32; do
  echo "  regular-$width: { model.d_model: $width, encoder.layers: L*2 }"
  echo "  frozen-$width: { model.d_model: $width, encoder.layers: R L }"
done >>sweep.yaml
"$TARN" sweep sweep.yaml --output runs >out.txt 2>error.txt || fail "sweep: $(cat out.txt error.txt)"

families=(--family 'regular=regular-*' --family 'frozen=frozen-*')
"$TARN" fit runs "${families[@]}" --resamples 100 --svg fit.svg >out.txt 2>error.txt || fail "fit: $(cat error.txt)"
grep -Eq '^L = a x\^-b \+ c +L: valid/nll +x: parameters$' out.txt || fail "no law is named: $(cat out.txt)"
grep -Eq '^regular +8 +4 +[0-9.e+]+ \([0-9.e+-]+ to [0-9.e+]+\) ' out.txt || fail "no law of regular: $(cat out.txt)"
grep -q '^frozen minus regular$' out.txt && grep -q '^  exponent of parameters .*decided$' out.txt || fail "no difference: $(cat out.txt)"
grep -q '^regular: too few sizes to leave the largest one out as a check$' out.txt || fail "the check: $(cat out.txt)"
if command -v xmllint >/dev/null; then xmllint --noout fit.svg || fail "the figure is not well-formed"; fi
! grep -qiE 'nan|inf[^o]' fit.svg || fail "a place in the figure is no number"
# The same numbers each time; as JSON too.
"$TARN" fit runs "${families[@]}" --resamples 100 >again.txt
cmp out.txt again.txt || fail "another result"
"$TARN" fit runs "${families[@]}" --resamples 100 --json | jq -e '
  .axes == ["parameters"] and .metric == "valid/nll" and (.laws | length) == 2 and (.laws[0].runs | length) == 8 and
  (.laws[0].b[0] | .low <= .value and .value <= .high) and (.laws[1].predictions | length) == 3 and
  .pairs[0].second == "frozen" and .laws[0].check.x == null' >/dev/null || fail "JSON"
# Other sizes and scores; operations differ from size to size as parameters do.
for axis in trained operations; do
  "$TARN" fit runs "${families[@]}" --axis $axis --metric loss --resamples 0 --predict 1e9 >out.txt || fail "$axis"
  grep -Eq "L: valid/loss +x: $axis" out.txt && grep -q '^1e+09 ' out.txt || fail "$axis: $(cat out.txt)"
done
# A record with fits.txt gets their tables and figures on its page, and a document that quotes it their differences.
mkdir -p results documents
"$TARN" record runs --output results/laws >/dev/null || fail "record"
printf '# Does it scale?\n' >results/laws/question.md
echo "laws --family 'regular=regular-*' --family 'frozen=frozen-*' --resamples 40" >results/laws/fits.txt
printf '<!-- results/laws -->\n<!-- end -->\n' >documents/page.md
pages() { TARN_RESULTS=$PWD/results TARN_DOCUMENTS=$PWD/documents TARN_RECIPES=$PWD/recipes "$TARN_SOURCE_DIR/scripts/results.sh" "$@"; }
pages >out.txt 2>error.txt || fail "pages: $(cat error.txt)"
grep -q "^    tarn fit results/laws --family 'regular=regular-\*'" results/laws/README.md && grep -q '^    frozen minus regular$' results/laws/README.md &&
  grep -q '](laws.svg)$' results/laws/README.md || fail "$(cat results/laws/README.md)"
tr '\n' ' ' <documents/page.md | grep -Eq 'over parameters in 16 runs, frozen minus regular with 95 % intervals: exponent of parameters .*decided; constant .*decided' ||
  fail "$(cat documents/page.md)"
pages --check || fail "what it wrote differs"
# Of several laws a sentence counts the runs of its two.
"$TARN" fit runs "${families[@]}" --resamples 0 --json |
  jq '.laws += [.laws[1] | .family = "third" | .runs |= .[:5]] | .pairs += [.pairs[0] | .second = "third"]' |
  jq -r -f "$TARN_SOURCE_DIR/results/fit.jq" >out.txt
[ "$(grep -o 'in [0-9]* runs, [a-z]* minus' out.txt | tr '\n' ' ')" = 'in 16 runs, frozen minus in 13 runs, third minus ' ] || fail "$(cat out.txt)"
echo '<!-- -->' >>results/laws/laws.svg
! pages --check >out.txt 2>error.txt || fail "a changed figure passes"
grep -q 'laws.svg is not what its records say' error.txt || fail "$(cat error.txt)"
# Runs that are not finished are left out, and the first ones named.
mkdir away
for width in 8 16 24 32; do mv runs/regular-$width/seed-2/result.json away/$width; done
"$TARN" fit runs "${families[@]}" --resamples 0 >out.txt
grep -q '^note: runs/regular-8/seed-2 is unfinished and not in the fit$' out.txt || fail "no note: $(cat out.txt)"
[ "$(grep -c ' is unfinished and not' out.txt)" = 3 ] && grep -q '^note: of the runs of regular 1 more are not in the fit$' out.txt || fail "$(cat out.txt)"
for width in 16 24 32; do mv away/$width runs/regular-$width/seed-2/result.json; done

exactly 1 'tarn fit: family all has 2 finished runs of 1 different size in parameters, and a law needs at least 4 sizes' \
  "$TARN" fit runs/frozen-8
exactly 1 'tarn fit: family regular has 7 finished runs of 4 different sizes in parameters and tokens, and a law needs at least 6 sizes' \
  "$TARN" fit runs "${families[@]}" --axis parameters,tokens
refuse 2 'there is no axis "flops"; a size is in parameters, trained (parameters), tokens, text or operations' \
  "$TARN" fit runs --axis flops
refuse 2 'there is no axis "token"; did you mean "tokens"?' "$TARN" fit runs --axis token
refuse 2 '--axis parameters,tokens,text: a law has at most 2 axes' "$TARN" fit runs --axis parameters,tokens,text
refuse 2 "--family frozen: it is NAME=PATTERN, such as reservoir='reservoir-\*'" "$TARN" fit runs --family frozen
refuse 2 '--predict many: expected a size above 0, such as 1e8' "$TARN" fit runs --predict many
refuse 2 '--predict 1e8: expected two sizes above 0, such as 1e8,2e9' \
  "$TARN" fit runs --axis parameters,tokens --predict 1e8
refuse 2 'family other: no configuration has a name like "other-\*"; the first is regular-8' "$TARN" fit runs --family 'other=other-*'
refuse 2 'a score of which less is better, and of valid/bleu more is' "$TARN" fit runs --metric bleu
