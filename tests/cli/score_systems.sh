# Several systems, intervals and paired tests of tarn bleu, chrf and ter: output and refusals.
# tests/unit/test_significance.c checks the numbers.
set -u
failed=0
# same NAME EXPECTED GOT
same() {
  if [ "$2" != "$3" ]; then
    printf '%s:\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    failed=1
  fi
}
# has NAME PATTERN TEXT: a line of the text matches the whole pattern.
has() {
  printf '%s\n' "$3" | grep -qxE -- "$2" || { printf '%s: no line "%s" in:\n%s\n' "$1" "$2" "$3"; failed=1; }
}

awk 'BEGIN { for (i = 0; i < 60; i++) print "the", i % 7, "old house", i % 3, "stands near a", i % 5, "tree and waits" }' > ref
awk '{ if (NR % 3 == 0) $4 = "building"; print }' ref > good
awk '{ if (NR % 2 == 0) { $3 = "new"; $7 = "far" } if (NR % 5 == 0) $1 = "a"; print }' ref > poor
cp good same
version=$("$TARN" bleu --reference ref good | sed -n 's/.*version://p')
tail_of='case:mixed|eff:no|tok:13a|smooth:exp|version:'$version

out=$("$TARN" bleu --reference ref poor good same)
has "scores alone" 'system +BLEU' "$out"
has "scores alone" 'good +[0-9.]+' "$out"
same "scores alone: lines" 6 "$(printf '%s\n' "$out" | wc -l | tr -d ' ')"
same "scores alone: signature" "nrefs:1|$tail_of" "$(printf '%s\n' "$out" | tail -1)"
same "one score, one way" "$("$TARN" bleu --reference ref good | sed 's/BLEU = \([0-9.]*\) .*/\1/;q')" \
  "$(printf '%s\n' "$out" | awk '$1 == "good" { print $2 }')"

out=$("$TARN" bleu --reference ref --confidence < poor)
has "interval of standard input" 'BLEU = [0-9.]+ \(μ = [0-9.]+ ± [0-9.]+\) [0-9.]+/.* ref_len = [0-9]+\)' "$out"
same "interval: signature" "nrefs:1|bs:1000|seed:12345|$tail_of" "$(printf '%s\n' "$out" | tail -1)"
same "equal seeds" "$out" "$("$TARN" bleu --reference ref --confidence --confidence-n 1000 --seed 12345 poor)"
[ "$out" != "$("$TARN" bleu --reference ref --confidence --seed 1 poor)" ] || { echo "the seed has no effect"; failed=1; }
has "intervals of systems" 'good +[0-9.]+ +[0-9.]+ +± [0-9.]+' "$("$TARN" chrf --reference ref --confidence poor good)"

out=$("$TARN" bleu --reference ref --paired-bs poor good same)
has "paired bootstrap" 'system +BLEU +mean +95 % +difference +p' "$out"
has "paired bootstrap" 'poor \(baseline\) +[0-9.]+ +[0-9.]+ +± [0-9.]+ +- +-' "$out"
has "paired bootstrap" 'good +[0-9.]+ +[0-9.]+ +± [0-9.]+ +\+[0-9.]+ +< 0\.001' "$out"
out=$("$TARN" ter --reference ref --paired-ar --paired-ar-n 400 --seed 3 good same poor)
has "randomization" 'system +TER +difference +p' "$out"
has "randomization of equal systems" 'same +[0-9.]+ +\+0\.00 +1\.000' "$out"
has "randomization" 'poor +[0-9.]+ +\+[0-9.]+ +0\.002' "$out"  # 1 / 401, the smallest possible
same "randomization: signature" "nrefs:1|ar:400|seed:3|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:$version" \
  "$(printf '%s\n' "$out" | tail -1)"
has "both" 'nrefs:1\|bs:100\|ar:400\|seed:12345\|.*' \
  "$("$TARN" chrf --reference ref --paired-ar --paired-ar-n 400 --confidence --confidence-n 100 good poor)"

out=$("$TARN" bleu --json --reference ref --paired-bs poor good)
same "JSON: a line a system" 2 "$(printf '%s\n' "$out" | wc -l | tr -d ' ')"
case $out in
  '{"system":"poor","name":"BLEU","score":'*'"confidence":{"mean":'*'"low":'*'"high":'*'"half_width":'*'"resamples":1000,"seed":12345}'*'
{"system":"good"'*'"test":{"method":"paired bootstrap","difference":'*',"p":0.000999'*',"resamples":1000,"seed":12345,"baseline":"poor"}'*'}') ;;
  *) echo "unexpected JSON: $out"; failed=1 ;;
esac

# refuses NAME EXIT-CODE PART-OF-THE-LINE COMMAND...: one line on standard error, nothing on standard output.
refuses() {
  name=$1 code=$2 part=$3
  shift 3
  "$TARN" "$@" < good > out 2> err
  got=$?
  same "$name: exit code" "$code" "$got"
  same "$name: lines on standard error" 1 "$(wc -l < err | tr -d ' ')"
  same "$name: standard output" "" "$(cat out)"
  grep -qF -- "$part" err || { echo "$name: \"$part\" is not in: $(cat err)"; failed=1; }
}
head -59 poor > short
: > empty
refuses "line counts" 1 "short has 59 lines but ref has 60" bleu --reference ref --paired-bs good short
refuses "an empty system" 1 "empty has 0 lines but ref has 60" chrf --reference ref good empty
refuses "nothing at all" 1 "no sentence" ter --reference empty --confidence empty
refuses "a system twice" 2 "the system good is given twice" bleu --reference ref good poor good
refuses "one system" 2 "--paired-bs needs two systems or more" bleu --reference ref --paired-bs good
refuses "standard input" 2 "--paired-ar needs two systems or more" ter --reference ref --paired-ar
refuses "two tests" 2 "take one" bleu --reference ref --paired-ar --paired-bs good poor
refuses "no resamples" 2 "--confidence-n" bleu --reference ref --confidence --confidence-n 0
refuses "no resamples" 2 "--paired-bs-n" bleu --reference ref --paired-bs --paired-bs-n 0 good poor
refuses "no trials" 2 "--paired-ar-n" bleu --reference ref --paired-ar --paired-ar-n 0 good poor
refuses "a number without use" 2 "--paired-ar-n needs --paired-ar" bleu --reference ref --paired-bs --paired-ar-n 99 good poor
refuses "two numbers for one thing" 2 "intervals of its own" \
  bleu --reference ref --confidence --confidence-n 99 --paired-bs good poor
refuses "a seed without use" 2 "--seed needs" bleu --reference ref --seed 3
refuses "sentences of several" 2 "--sentence takes one system" bleu --reference ref --sentence good poor
refuses "intervals of sentences" 2 "--sentence has no intervals" bleu --reference ref --sentence --confidence

same "a reference as a system" "tarn bleu: warning: copy has the very lines of the reference ref" \
  "$(cp ref copy; "$TARN" bleu --reference ref poor copy 2>&1 > out)"
printf 'a\377\n' > bad
printf 'a\n' > sound
same "malformed UTF-8" "tarn bleu: warning: bad: malformed UTF-8 sequences read as U+FFFD: 1" \
  "$(printf 'b\n' > other; "$TARN" bleu --reference sound other bad 2>&1 > out)"
exit $failed
