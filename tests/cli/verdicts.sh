#!/usr/bin/env bash
# One verdict per pair: tarn compare and tarn report state the same about every difference, and nothing that the seeds
# cannot support. The first case is a sweep of three variants and two seeds, whose differences of +2.0 and -0.4 BLEU
# were "p 0.000" in the one and "too near to tell" and "better, p < 0.002" in the other, with the undecided best cells
# in bold.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"

. "$(dirname "$0")/../tested_runs.sh"

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
