#!/usr/bin/env bash
# tarn series: an example series generated, trained on and forecast, and refusals.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"


"$TARN" series generate mackey-glass --rows 1500 --output mg.csv
"$TARN" series generate mackey-glass --rows 1500 --output again.csv
cmp mg.csv again.csv
[ "$(wc -l <mg.csv)" -eq 1501 ] || fail "rows of mg.csv"
"$TARN" series generate lorenz --rows 50 --output lorenz.csv
[ "$(head -1 lorenz.csv)" = x,y,z ] || fail "header of lorenz.csv"

train=("$TARN" series train mg.csv --rows 1000 --units 150 --lr 0.7 --output model)
"${train[@]}" >train.txt
grep -q '^regression   899 samples, ridge 1e-06$' train.txt || fail "train: $(cat train.txt)"
grep -q '^test         NRMSE .* 500 rows$' train.txt || fail "train: $(cat train.txt)"
"$TARN" series forecast model mg.csv --steps 100 --starts 3 --lyapunov 0.006 --output f.csv >forecast.txt
grep -q 'Lyapunov times (normalised error up to 0.4)' forecast.txt || fail "forecast: $(cat forecast.txt)"
[ "$(wc -l <f.csv)" -eq 301 ] || fail "rows of f.csv"
[ "$(head -1 f.csv)" = start,row,x ] || fail "header of f.csv"
"${train[@]}" --seed 1 >/dev/null
"$TARN" series forecast model mg.csv --steps 100 --starts 3 --output g.csv >/dev/null
cmp f.csv g.csv || fail "the same seed forecasts otherwise"
"$TARN" series forecast model mg.csv --one-step --json | grep -q '"valid_to_end":1' || fail "one step ahead"
"$TARN" series forecast model mg.csv --from 1500 --steps 5 | grep -q NRMSE && fail "measured what nobody knows"
# By the variance of the compared rows; a single row has none.
grep -q '^test         NRMSE .* by the variance of its 500 rows$' train.txt || fail "train: $(cat train.txt)"
grep -q '^NRMSE        [0-9.]* by the variance of the 300 rows compared$' forecast.txt || fail "forecast: $(cat forecast.txt)"
"$TARN" series forecast model mg.csv --steps 1 --json | grep -q '"nrmse":null' || fail "one row has no variance"
"$TARN" series forecast model mg.csv --steps 1 | grep -q '^NRMSE        none: a column does not vary' || fail "one row"
# An infinite error is null in JSON.
awk 'NR == 1 { print; next } { printf "%.17ge-155\n", $1 }' mg.csv >tiny.csv
"$TARN" series forecast model tiny.csv --json >tiny.json
grep -q '"nrmse":null,.*"valid_time":0' tiny.json || fail "an infinite error: $(cat tiny.json)"
# A diverging forecast ends there; the others are measured.
awk 'NR == 1 { print; next } NR <= 400 { x += 1; printf "%.17g\n", exp(x / 20) }' mg.csv >growing.csv
"$TARN" series train growing.csv --rows 300 --warmup 10 --units 50 --activation relu --sr 1.4 --raw --output wild >/dev/null
"$TARN" series forecast wild growing.csv --from 100 --steps 100000 --output wild.csv >wild.txt || fail "a forecast that diverges"
grep -q '^diverged     1 of 1$' wild.txt || fail "divergence: $(cat wild.txt)"
[ "$(wc -l <wild.csv)" -gt 10 ] && [ "$(wc -l <wild.csv)" -lt 100000 ] || fail "its rows: $(wc -l <wild.csv)"
! grep -q nan wild.csv || fail "rows that are no numbers are written"
# Columns without names, and names with commas.
tail -n +2 mg.csv >bare.csv
"$TARN" series train bare.csv --rows 1000 --units 50 --output bare >/dev/null
"$TARN" series forecast bare bare.csv --steps 10 --output bare.out >/dev/null
[ "$(head -1 bare.out)" = start,row,column1 ] || fail "header of bare.out: $(head -1 bare.out)"
sed '1s/.*/"x, in ""mm"""/; 2s/.*/"&"/' mg.csv >quoted.csv
"$TARN" series train quoted.csv --rows 1000 --units 50 --output quoted >/dev/null || fail "quotes"
"$TARN" series forecast quoted quoted.csv --steps 10 --output quoted.out >/dev/null || fail "quotes in a forecast"
[ "$(head -1 quoted.out)" = 'start,row,"x, in ""mm"""' ] || fail "header of quoted.out: $(head -1 quoted.out)"
"$TARN" series train quoted.out --rows 8 --warmup 1 --units 10 --columns 'row' --output x >/dev/null || fail "its own output"
printf '"a"b,c\n1,2\n' >open.csv
refuse 1 'open.csv:1: column 1: a cell that begins with a quote must end with one' "$TARN" series train open.csv --output x
rm -f x

if [ -w /dev/full ]; then
  for command in "train mg.csv --units 20 --output full" "forecast model mg.csv"; do
    for json in "" --json; do
      # shellcheck disable=SC2086
      refuse 1 'cannot write to standard output' bash -c '"$TARN" series "$@" >/dev/full' - $command $json
    done
  done
fi

printf 'x\n1\n\n2\n' >gap.csv
refuse 1 "gap.csv:3: column 1 x: the number is missing" "$TARN" series train gap.csv --output m
# Standard input, from its current position.
"$TARN" series train mg.csv --rows 1000 --units 50 --output piped >named.txt
{ read -r _; "$TARN" series train - --header no --rows 1000 --units 50 --output unnamed; } <mg.csv >bare.txt
cmp named.txt bare.txt || fail "a series from standard input is another one: $(cat bare.txt)"
"$TARN" series forecast piped - --steps 100 <mg.csv >piped.txt || fail "a forecast of standard input"
"$TARN" series forecast piped mg.csv --steps 100 | cmp - piped.txt || fail "standard input is forecast otherwise"
printf 'x\n1\n0x2\n' >hexadecimal.csv
refuse 1 'standard input:3: column 1 x: "0x2" is hexadecimal' "$TARN" series train - --output m <hexadecimal.csv
[ ! -e - ] || fail "a file named -"
printf 'x,x\n1,2\n' >twice.csv
refuse 2 'columns 1 and 2 are both named "x"' "$TARN" series train twice.csv --columns x --output m
# Semicolons, tabs and decimal commas are detected, or given.
for form in 's/\./,/' 's/\./,/; s/$/;1/; 1s/;1/;y/' 's/$/\t1/; 1s/1$/y/'; do
  sed "$form" mg.csv >form.csv
  "$TARN" series train form.csv --columns x --rows 1000 --units 50 --output formed >formed.txt || fail "a table by $form"
  cmp named.txt formed.txt || fail "a table by $form is another one: $(cat formed.txt)"
done
sed 's/\./,/; s/$/ 1/; 1s/1$/y/' mg.csv >form.csv
"$TARN" series train form.csv --delimiter space --decimal comma --columns x --rows 1000 --units 50 --output formed >formed.txt
cmp named.txt formed.txt || fail "a table by blanks: $(cat formed.txt)"
printf '20,5\n21,3\n' >two.csv
exactly 1 'tarn series train: two.csv:1: "20,5" may be 2 columns with commas between them, or one column with decimal commas; say which with --delimiter or --decimal' "$TARN" series train two.csv --output m
exactly 2 'tarn series train: --decimal is point or comma, not "dot" (see tarn series train --help)' "$TARN" series train two.csv --decimal dot --output m
printf 'a,b\n1,2\n3,x\n' >word.csv
exactly 1 'tarn series train: word.csv:3: column 2 b: "x" is no finite number' "$TARN" series train word.csv --output m
refuse 2 'there is no column "c"' "$TARN" series train word.csv --columns a,c --output m
exactly 2 "tarn series train: sr -0.1: a spectral radius that is not negative is expected" "$TARN" series train mg.csv --sr -0.1 --output m
"$TARN" series train mg.csv --sr 0 --rows 1000 --units 50 --output still >out.txt || fail "a spectral radius of 0: no recurrent connections"
refuse 2 "rc_connectivity 0" "$TARN" series train mg.csv --rc-connectivity 0 --output m
refuse 1 "nilpotent" "$TARN" series train mg.csv --rc-connectivity 0.001 --units 40 --output m
refuse 2 "leave out the options" "$TARN" series train mg.csv --matrices model --units 7 --output m
refuse 1 "trained on 1 columns, the series has 3" "$TARN" series forecast model lorenz.csv
refuse 2 "is mackey-glass or lorenz, not" "$TARN" series generate rossler --output m
refuse 2 "takes no --tau" "$TARN" series generate lorenz --tau 17 --output m
refuse 2 "not \"fit\"" "$TARN" series fit mg.csv
refuse 2 "--output is missing" "$TARN" series train mg.csv
[ ! -e m ] || fail "a refused training left a file"
