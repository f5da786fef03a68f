#!/usr/bin/env bash
# tarn report: its files are complete and well-formed, and their numbers are those of tarn compare.
set -euo pipefail
. "$(dirname "$0")/../report_runs.sh"

"$TARN" report sweep --output out --resamples 100 >printed.txt || fail "report"
[ "$(cat printed.txt)" = out/report.html ] || fail "prints $(cat printed.txt)"
for file in report.html report.md report.tex results.csv runs.csv figures/aucc.svg figures/parameters.svg figures/layers.svg figures/layers-aucc.svg \
  figures/bleu-time.svg figures/bleu-updates.svg figures/loss-time.svg figures/model-full.svg figures/model-half----x-.svg; do
  [ -s "out/$file" ] || fail "$file is missing: $(ls -R out)"
done
! ls out/*.tmp* out/figures/*.tmp* 2>/dev/null || fail "temporary files are left"

# Well-formed, and without external resources.
if command -v xmllint >/dev/null; then
  xmllint --noout out/figures/*.svg || fail "an SVG file is not well-formed"
  xmllint --noout out/report.html || fail "the page is not well-formed"
fi
! grep -qiE '<script|<iframe|<link rel="stylesheet|@import|(src|href)="(https?:)?//' out/report.html || fail "the page needs something from elsewhere"
! grep -qE '(nan|inf)[,"]' out/figures/*.svg || fail "a figure has a place that is no number"
# The curves come before the fourth table.
[ "$(sed '/<h2 id="curves"/q' out/report.html | grep -c '<table')" -le 3 ] && grep -q '<h2 id="more-tables"' out/report.html ||
  fail "$(sed '/<h2 id="curves"/q' out/report.html | grep -c '<table') tables before the curves"
! grep -q '<x>' out/report.html || fail "a name is not escaped"
grep -q 'half &amp; &lt;x&gt;' out/report.html || fail "a name is missing"
grep -q 'half &amp; &lt;x&gt;' out/figures/aucc.svg || fail "a name is missing in a figure"

# All tables and figures that compare state which layers are frozen.
for file in report.md report.tex results.csv runs.csv figures/aucc.svg figures/parameters.svg figures/bleu-time.svg; do
  grep -q 'encoder 1 3 of 4 frozen' "out/$file" || fail "$file does not say which layers are frozen"
  grep -q 'no layer frozen' "out/$file" || fail "$file does not say that no layer is frozen"
done

# The origin of the runs is on the page and under each figure, also in its file; error bars are explained.
origin='Data: [^;]*train; seeds 1, 2; trained (on|from) 20[0-9-]+.*; .* \([a-z0-9_]+\), 1 thread; tarn [0-9.]+\.'
[ "$(grep -Eo "class=\"origin\">$origin" out/report.html | wc -l)" -eq $((1 + $(grep -c '<figure' out/report.html))) ] ||
  fail "the page does not say below every figure what it is of: $(grep -o 'class="origin">[^<]*' out/report.html | head -n 2)"
grep -q '^Data: ' out/report.md || fail "report.md does not say what the runs are of"
for file in out/figures/*.svg; do grep -q '>Data: ' "$file" || fail "$file does not say what it is of"; done
grep -q 'The band is the mean plus and minus one sample standard deviation over the runs of 2 seeds\.' out/report.html ||
  fail "bands are not explained"
grep -q 'The black line on a bar is the mean plus' out/report.md || fail "error bars are not explained"
[ "$(grep -c '\\includegraphics' out/report.tex)" -eq "$(ls out/figures/*.svg | wc -l)" ] || fail "report.tex has not every figure"

# Translations by both models: unmodified sentences of the test set.
plain='s/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g'
[ "$(grep -c '<dl class="texts">' out/report.html)" -eq 6 ] || fail "there are not six examples"
grep -o '<dt>full, seed 1</dt><dd>[^<]*' out/report.html | sed "s/.*<dd>//; $plain" | while IFS= read -r line; do
  grep -qxF -- "$line" sweep/full/seed-1/test.hyp || fail "no translation of it: $line"
done
[ "$(grep -o '<dt>source</dt><dd>[^<]*' out/report.html | sed "s/.*<dd>//; $plain" | grep -cxFf corpus/valid.de)" -eq 6 ] ||
  fail "the sentences are not those of the test"
grep -q '^| half .*, seed 1 |' out/report.md || fail "no translations in report.md"

# Failed and pending runs are shown as such.
grep -q '<tr class="failed">.*failed: ' out/report.html || fail "the failed run is not shown"
grep -q '<tr class="open">.*pending' out/report.html || fail "the run that has not begun is not shown"
grep -Eq '^broken,[^,]*,1,[^,]*,failed,' out/runs.csv || fail "runs.csv: $(cat out/runs.csv)"
[ "$(wc -l <out/runs.csv)" -eq 9 ] || fail "runs.csv has not a line for each of eight runs: $(cat out/runs.csv)"
grep -q 'layers: (R1 L)\*2' out/report.html || fail "a configuration is missing"
grep -q '<svg' out/report.html || fail "no figure in the page"
grep -q 'toprule' out/report.tex || fail "no table in LaTeX"

grep -q 'kinds.L.ffn=65' out/report.md || fail "the table does not say what was equalized"
grep -Eq '^\| model .*\| seed \|.*\| test BLEU \| test chrF \|' out/report.md || fail "the runs have no chrF: $(cat out/report.md)"

# Numbers. jq prints one number per line; statistics are objects, values of runs are not.
"$TARN" compare sweep --json --resamples 100 | jq . >compare.json || fail "compare"
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at == "" ? "null" : $at }' "$1"; }
same() {  # NAME: a measure in results.csv and in the comparison
  column out/results.csv "$1_mean" >csv.txt
  grep -A1 "\"$1\": {" compare.json | sed -nE 's/.*"mean": ([^,]*),?$/\1/p' >json.txt
  [ "$(wc -l <json.txt)" -eq 4 ] || fail "$1: not four values: $(cat json.txt)"
  paste csv.txt json.txt | awk '$1 != $2 && !($1 - $2 <= 1e-10 * ($1 < 0 ? -$1 : $1) && $2 - $1 <= 1e-10 * ($1 < 0 ? -$1 : $1)) { bad = 1 } END { exit bad }' ||
    fail "$1 differs: $(paste csv.txt json.txt)"
}
for name in aucc aucc_mean best best_seconds min_loss min_loss_seconds epoch_seconds budget_step budget_epoch test_bleu test_chrf \
  min_train_loss min_train_loss_seconds epoch_train_loss; do
  same $name
done
[ "$(column out/results.csv test_bleu_runs | head -n 1)" = 2 ] || fail "test BLEU of two runs: $(cat out/results.csv)"
column out/results.csv test_bleu_low | sed -n 2p | grep -Eq '^-?[0-9]' || fail "no interval: $(cat out/results.csv)"
column out/results.csv test_bleu_verdict | sed -n 2p | grep -qx 'no verdict (two seeds)' || fail "a verdict of two seeds: $(cat out/results.csv)"

# Figures as PDF, if the program was built with librsvg; otherwise one line says so, and nothing is written.
if [ -n "${TARN_SANITIZED:-}" ]; then
  :  # librsvg does not free everything at exit
elif "$TARN" report sweep --output pdf --resamples 0 --pdf >printed.txt 2>error.txt; then
  for file in pdf/figures/*.svg; do
    [ "$(head -c 5 "${file%.svg}.pdf")" = %PDF- ] || fail "${file%.svg}.pdf is no PDF"
  done
  if command -v pdflatex >/dev/null; then
    printf '%s\n' '\documentclass{article}\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}' \
      '\begin{document}\extrafloats{100}\input{report.tex}\end{document}' >pdf/paper.tex
    (cd pdf && pdflatex -interaction=batchmode -halt-on-error paper.tex >/dev/null) || fail "report.tex: $(tail -20 pdf/paper.log)"
  fi
else
  grep -q 'cannot be written as PDF: .*librsvg' error.txt || fail "--pdf: $(cat error.txt)"
  [ ! -e pdf ] || fail "a report is begun that cannot be written"
fi

# Equal outputs are no difference. With one seed each, the verdict is about the two models.
cp -r sweep equal
rm -r equal/*/seed-2
cp equal/full/seed-1/test.* "equal/$half/seed-1"
"$TARN" report equal --output same >printed.txt || fail "report of equal outputs"
grep -q 'undecided, of these two models: half .*(+0\.00, p = 1\.000)' same/report.md || fail "equal outputs: $(grep against same/report.md)"
column same/results.csv test_bleu_p | sed -n 2p | grep -qx 1 || fail "equal outputs: $(cat same/results.csv)"

# A second report that replaces the first, with other options.
"$TARN" report sweep --output out --metric loss --title 'Of <loss>' --baseline "$half" --resamples 0 >printed.txt ||
  fail "report of losses"
grep -q '<h1>Of &lt;loss&gt;</h1>' out/report.html || fail "no title"
grep -q 'Lowest mean best validation loss' out/report.html || fail "not about losses"

# Runs that cannot be reported.
refuse 2 "output" "$TARN" report sweep
refuse 2 "argument is missing" "$TARN" report --output x
refuse 1 "gone" "$TARN" report gone --output x
refuse 2 "finished" "$TARN" report sweep/broken/seed-1 --output x
refuse 2 "valid/b" "$TARN" report sweep --output x --metric valid/blue
refuse 2 "full" "$TARN" report sweep --output x --baseline fulll
[ ! -e x ] || fail "a folder is made for a report that cannot be"
: >file
refuse 1 "file" "$TARN" report sweep --output file --resamples 0

# Many pending runs give one note.
cp -r sweep fewer
rm -r fewer/*/seed-2
"$TARN" compare fewer >compare.txt 2>&1 || fail "compare of a sweep that has just begun: $(cat compare.txt)"
grep -Eq '[2-9] runs have not begun and are in no mean: ' compare.txt || fail "runs that have not begun: $(cat compare.txt)"
