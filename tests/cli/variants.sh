#!/usr/bin/env bash
# examples/variants/run.sh: all rows of each task are descriptions that can be trained; a small table; refusals. And
# examples/scaling/run.sh.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"
run=$(dirname "$0")/../../examples/variants/run.sh
[ -x "$run" ] || fail "there is no $run"

"$TARN" corpus --output text --sentences 400 --held-out 30 >/dev/null || fail "corpus"
cp text/valid.de text/test.de && cp text/valid.en text/test.en
for _ in $(seq 40); do cat text/train.en; done >long.txt
mkdir -p glue/SST-2
for set in train dev; do
  { printf 'sentence\tlabel\n'; awk '{ print $0 "\t" NR % 2 }' text/train.en; } >glue/SST-2/$set.tsv
done

# The small texts have pieces for small vocabularies only.
cp -r "$(dirname "$run")" own
sed -i 's/--size 4000/--size 300/' own/run.sh
sed -i 's/\[1000, 2500\]/[100, 200]/' own/variants.txt
variants() { bash own/run.sh "$@"; }

rows() { grep -c "^[a-z0-9-]* \+[0-9]\+ \+[0-9]\+ \+[0-9]\+ \+[0-9.]\+ " "$1"; }
all=$(awk -F'|' '!/^#/ && NF >= 4 && $5 !~ /translation:/ { n += 1 + ($4 ~ /twin/) } END { print n }' own/variants.txt)
variants translation t --data text --equal parameters --quick --dry-run >out.txt 2>error.txt || fail "translation: $(cat error.txt)"
[ "$(rows out.txt)" -eq "$all" ] || fail "$(rows out.txt) rows of translation, not $all: $(cat out.txt)"
grep -q '^budget 20 s of training each: at least' out.txt || fail "no time is told: $(tail -n 3 out.txt)"
variants translation c --data text --equal parameters --change layers --rows evolved,layers-8,heads-8 --quick --dry-run >out.txt 2>error.txt ||
  fail "translation by layers: $(cat error.txt)"
grep -q '^layers-8 .*; encoder.layers=L\*[0-9]*; 1 %' out.txt || fail "no layers are changed: $(cat out.txt)"
grep -q '^evolved .*; 1 % CANNOT BE MET: the number of repetitions of the layers' out.txt || fail "no bound is told: $(cat out.txt)"
variants language l --data long.txt --equal operations --dry-run >out.txt 2>error.txt || fail "language: $(cat error.txt)"
[ "$(rows out.txt)" -gt 45 ] || fail "$(rows out.txt) rows of language: $(cat out.txt)"
variants masked m --data glue --text long.txt --dry-run >out.txt 2>error.txt || fail "masked: $(cat error.txt)"
[ "$(rows out.txt)" -gt 55 ] || fail "$(rows out.txt) rows of masked: $(cat out.txt)"

# The whole way, with each seed's body fine-tuned.
variants masked m --data glue --text long.txt --seconds 1 --rows geglu-frozen --equal parameters >out.txt 2>error.txt ||
  fail "masked: $(cat out.txt error.txt)"
grep -Eq '^\| geglu-frozen \| 2 of 4 \| [0-9.]+ M \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ ± [0-9.]+ \| [0-9.]+ ± [0-9.]+ \| [^|]+ \| [^|]+ \| +\|$' m/table-masked.md ||
  fail "the table: $(cat m/table-masked.md)"
grep -Eq '^\| vanilla .* \| 3.50, 1.838, 26.62 \|$' m/table-masked.md || fail "no published figures: $(cat m/table-masked.md)"
for seed in 1 2 3; do
  grep -q "init_from: .*masked/vanilla/seed-$seed\"*$" m/sst2/vanilla/seed-$seed/config.yaml || fail "seed $seed begins elsewhere: $(grep init_from m/sst2/vanilla/seed-$seed/config.yaml)"
done
[ -s m/report-masked/figures/speed.svg ] || fail "there is no figure of quality over speed"
# Again: nothing is left to do.
variants masked m --data glue --text long.txt --seconds 1 --rows geglu-frozen --equal parameters >again.txt 2>error.txt || fail "again: $(cat error.txt)"
! grep -q '^started' again.txt || fail "it starts anew: $(cat again.txt)"

# The sizes of examples/scaling can be trained too.
scaling=$(dirname "$run")/../scaling/run.sh
bash "$scaling" long.txt sizes --quick --dry-run >out.txt 2>error.txt || fail "scaling: $(cat error.txt)"
grep -q '^90 runs, 90 of them to be trained' out.txt || fail "scaling: $(tail -n 3 out.txt)"
refuse 2 'nothing is no file' bash "$scaling" nothing sizes
refuse 2 'unknown option --fast' bash "$scaling" long.txt sizes --fast

refuse 2 'there is no task vision; there are: translation masked language' variants vision v --data text
refuse 2 'no such file or folder' variants translation v
refuse 2 '\-\-equal width: there are parameters and operations' variants translation v --data text --equal width
refuse 2 '\-\-change width: there are ffn, layers and heads' variants translation v --data text --equal parameters --change width
refuse 2 '\-\-change layers says what is changed for --equal' variants translation v --data text --change layers
refuse 2 'masked pre-trains on a text file' variants masked v --data glue
refuse 2 'was made of .*; give another OUTPUT' variants language l --data text/train.de
