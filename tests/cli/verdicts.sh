#!/usr/bin/env bash
# One verdict per pair: tarn compare and tarn report state the same about every difference, and nothing that the seeds
# cannot support. The first case is a sweep of three variants and two seeds, whose differences of +2.0 and -0.4 BLEU
# were "p 0.000" in the one and "too near to tell" and "better, p < 0.002" in the other, with the undecided best cells
# in bold.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"

# Sentences of ten words, and translations with a share of wrong words; translations with the same share have the same
# errors, so sentences alone would make every difference significant.
words() {  # SHARE: 300 lines
  awk -v share="$1" 'BEGIN { x = 42; for (s = 0; s < 300; s++) { line = ""; for (w = 0; w < 10; w++) {
    x = (x * 16807) % 2147483647; word = x % 500; x = (x * 16807) % 2147483647
    line = line " " (x / 2147483647 < share ? "wrong" word : "word" word) } print substr(line, 2) } }'
}
words 0 >test.en

run() {  # VARIANT SEED SHARE LAYERS: a finished run whose test has that share of wrong words
  dir=sweep/$1/seed-$2
  mkdir -p "$dir"
  cat >"$dir/config.yaml" <<END
model: { d_model: 16 }
kinds:
  L: { heads: 2, ffn: 32 }
  R: { heads: 2, ffn: 32, frozen: yes }
data: { vocab: vocab, train: train, valid: valid }
encoder: { layers: $4 }
decoder: { layers: L }
train: { seed: $2, max_minutes: 2, max_updates: 0 }
END
  words "$3" >"$dir/test.hyp"
  "$TARN" bleu --json --reference test.en "$dir/test.hyp" >bleu.json || fail "bleu"
  "$TARN" chrf --json --reference test.en "$dir/test.hyp" >chrf.json || fail "chrf"
  both='.*"score":([0-9.e+-]+),"signature":("[^"]*").*'
  chrf=$(sed -E "s/$both/\"chrf\":\1,\"chrf_signature\":\2/" chrf.json)
  sed -E "s/$both/{\"bleu\":\1,\"signature\":\2,\"sentences\":300,\"beam\":5,\"reference\":\"test.en\",$chrf}/" bleu.json >"$dir/test.json"
  score=$(sed -E 's|\{"bleu":([0-9.]+),.*|\1|' "$dir/test.json")
  cat >"$dir/log.jsonl" <<END
{"kind":"valid","step":0,"epoch":0,"time":0,"valid_bleu":0}
{"kind":"train","step":50,"epoch":0.5,"time":60,"loss":5}
{"kind":"train","step":100,"epoch":1,"time":120,"loss":4}
{"kind":"valid","step":100,"epoch":1,"time":120,"valid_bleu":$score}
END
  cat >"$dir/result.json" <<END
{"version": "0.1.0", "status": "finished", "end": "minutes", "update": 100, "epoch": 1, "seconds": 120, "clock": "wall",
 "threads": 2, "peak_bytes": 1000000, "parameters": {"total": 30, "trained": 20, "frozen": 10, "shared_saved": 0}}
END
}

run regular 1 0.200 L*3
run regular 2 0.200 L*3
run half 1 0.1885 'L R L'
run half 2 0.204 'L R L'
run other 1 0.204 'R*2 L'
run other 2 0.188 'R*2 L'
"$TARN" compare sweep --baseline regular >compare.txt || fail "compare"
"$TARN" compare sweep --baseline regular --json | jq . >compare.json || fail "compare --json"
"$TARN" report sweep --baseline regular --output report >printed.txt || fail "report"

# The differences by seed are those of the case.
grep -Eq '^half +2 +\+[01]\.[0-9]+ +\[-[0-9.]+, \+[0-9.]+\] +\+[12]\.[0-9]+ -0\.[0-9]+ +- +no verdict \(two seeds\)$' compare.txt ||
  fail "no line of the case: $(cat compare.txt)"
grep -q '^test BLEU against regular$' compare.txt || fail "no verdict, but comparisons: $(cat compare.txt)"
! grep -Eq 'Holm|0 comparisons' compare.txt report/report.md || fail "no verdict, but comparisons: $(grep -E 'Holm|0 comparisons' compare.txt report/report.md)"
for file in compare.txt report/report.md report/report.html report/report.tex; do
  ! grep -E 'p = 0|p (&lt;|<|\\textless)|[^.0-9]0\.000.*verdict' $file || fail "$file has a p: $(cat $file)"
  ! grep -Ewq 'better|worse|too near' <(sed -E 's/(not decided that it|longer|value) is better//' $file | grep -v 'decided to be better') ||
    fail "$file calls something better: $(grep -Ew 'better|worse' $file)"
done
! grep -F '**' report/report.md || fail "something undecided is bold"
! grep -E '<td[^>]*><strong>' report/report.html || fail "something undecided is bold"
! grep -F 'textbf' report/report.tex || fail "something undecided is bold"
[ "$(grep -c 'no verdict (two seeds)' compare.txt)" -eq 8 ] || fail "two variants, four scores: $(cat compare.txt)"
[ "$(grep -c '| no verdict (two seeds) |$' report/report.md)" -eq 8 ] || fail "two variants, four scores: $(cat report/report.md)"

# Every pair is described in the same words, with the same numbers.
same_words() {
  grep -o '"words": "[^"]*"' compare.json | cut -d'"' -f4 | sort >json.words
  for name in test_bleu test_chrf best aucc_mean; do
    awk -F, -v name="${name}_verdict" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 && $at != "" { print $at }' report/results.csv
  done | sort >csv.words
  for words in $(sort -u csv.words | tr ' ' _); do
    [ "$(grep -cx "$(echo "$words" | tr _ ' ')" csv.words)" -le "$(grep -cx "$(echo "$words" | tr _ ' ')" json.words)" ] ||
      fail "other words: $(cat csv.words json.words)"
  done
  # Each row of compare's tables of verdicts is a row of the report's: name, difference, p, words.
  awk -F '  +' '$3 ~ /^[+-][0-9]/ { print $1, $3, $6, $7 }' compare.txt | sort >text.rows
  awk -F ' *[|] *' '$4 == "measure" { for (i = 1; i <= NF; i++) if ($i == "p") at = i; in_table = 1; next }
    /^$/ { in_table = 0 } in_table && $2 != "---" { print $2, $6, at ? $at : "-", $(NF - 1) }' report/report.md |
    sed 's/\\//g; s/−/-/g; s/–/-/g' | sort >page.rows
  [ "$(wc -l <text.rows)" -eq 8 ] || fail "not eight verdicts: $(cat compare.txt)"
  diff text.rows page.rows || fail "compare and report differ"
}
same_words

# A third seed, and one variant that is far better: only that is decided, and only that is bold.
run regular 3 0.203 L*3
run half 3 0.190 'L R L'
run other 1 0.1 'R*2 L'
run other 2 0.104 'R*2 L'
run other 3 0.098 'R*2 L'
"$TARN" compare sweep --baseline regular >compare.txt || fail "compare"
"$TARN" compare sweep --baseline regular --json | jq . >compare.json || fail "compare --json"
"$TARN" report sweep --baseline regular --output report >printed.txt || fail "report"
same_words
grep -q '^test BLEU against regular, 2 comparisons (Holm)$' compare.txt || fail "comparisons: $(cat compare.txt)"
grep -q '^test chrF against regular, 2 comparisons (Holm)$' compare.txt || fail "chrF: $(cat compare.txt)"
grep -Eq '^half .* undecided$' compare.txt || fail "three near seeds: $(cat compare.txt)"
grep -Eq '^other .* (< 0\.001|0\.0[0-4][0-9]) +better$' compare.txt || fail "three far seeds: $(cat compare.txt)"
grep -Eq '^other +3 .*\*[0-9.]+ ± ' compare.txt || fail "no mark: $(cat compare.txt)"
! grep -Eq '^(half|regular) .* \*[0-9]' compare.txt || fail "a mark too many: $(cat compare.txt)"
grep -Eq '^\| other \|.*\*\*[0-9.]+ ± [0-9.]+\*\*' report/report.md || fail "what is decided is not bold: $(cat report/report.md)"
! grep -Eq '^\| (half|regular) \|.*\*\*' report/report.md || fail "something undecided is bold: $(cat report/report.md)"
grep -q 'Verdicts on test BLEU against the baseline, 2 comparisons (Holm): better: other (.*); undecided: half (' report/report.md ||
  fail "the summary: $(cat report/report.md)"

# A chrF that does not match the translations.
sed -i 's/"chrf":[0-9]/"chrf":1/' sweep/half/seed-1/test.json
refuse 1 "its chrF against .* do not belong together" "$TARN" compare sweep
exit 0
