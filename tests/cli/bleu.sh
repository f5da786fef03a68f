# tarn bleu and tarn chrf: output and refusals. Expected numbers are sacreBLEU 2.6.0's.
set -u
failed=0
# same NAME EXPECTED GOT
same() {
  if [ "$2" != "$3" ]; then
    printf '%s:\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    failed=1
  fi
}

printf 'The cat sits on the mat.\nA man is riding a bicycle, and a dog follows.\nTwo children play in the Snow!\n' > hyp
printf 'The cat is sitting on the mat.\nA man rides a bicycle and a dog follows him.\nTwo children play in the snow.\n' > ref1
printf 'A cat sits on the mat.\nA man is riding a bike, a dog follows him.\nTwo kids are playing in the snow!\n' > ref2
version=$("$TARN" bleu --reference ref1 < hyp | sed -n 's/.*version://p')
case $version in tarn\ [0-9]*) ;; *) echo "no version in the signature: $version"; failed=1 ;; esac

same "corpus" "BLEU = 43.50 76.9/56.5/35.0/23.5 (BP = 1.000 ratio = 1.000 hyp_len = 26 ref_len = 26)
nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:$version" "$("$TARN" bleu --reference ref1 < hyp)"
same "two references" "BLEU = 77.35 100.0/87.0/70.0/58.8 (BP = 1.000 ratio = 1.000 hyp_len = 26 ref_len = 26)
nrefs:2|case:lc|eff:no|tok:intl|smooth:exp|version:$version" \
  "$("$TARN" bleu --reference ref1 --reference=ref2 --lowercase --tokenize intl hyp)"
same "smoothing value" "BLEU = 71.08 92.5/79.2/70.3/60.6 (BP = 0.951 ratio = 0.952 hyp_len = 80 ref_len = 84)
nrefs:1|case:mixed|eff:no|tok:char|smooth:floor[0.50]|version:$version" \
  "$("$TARN" bleu --reference ref1 --smooth floor --smooth-value 0.5 --tokenize char < hyp)"
same "sentences" "42.38
29.50
61.48" "$("$TARN" bleu --reference ref1 --sentence < hyp)"
same "chrF++" "chrF2++ = 76.98
nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|version:$version" \
  "$("$TARN" chrf --reference ref1 --reference ref2 --word-order 2 < hyp)"
same "chrF of sentences" "52.93
60.78
81.76" "$("$TARN" chrf --reference ref1 --sentence hyp)"
case $("$TARN" bleu --json --reference ref1 hyp) in
  '{"name":"BLEU","score":43.4998560283'*'"counts":[20,13,7,4],"totals":[26,23,20,17]'*'"hyp_len":26,"ref_len":26,'*'}') ;;
  *) echo "unexpected JSON"; failed=1 ;;
esac
same "JSON lines" 3 "$("$TARN" chrf --json --sentence --reference ref1 hyp | wc -l | tr -d ' ')"

# refuses NAME EXIT-CODE PART-OF-THE-LINE COMMAND...: one line on standard error, nothing on standard output.
refuses() {
  name=$1 code=$2 part=$3
  shift 3
  "$TARN" "$@" < short > out 2> err
  got=$?
  same "$name: exit code" "$code" "$got"
  same "$name: lines on standard error" 1 "$(wc -l < err | tr -d ' ')"
  same "$name: standard output" "" "$(cat out)"
  grep -qF -- "$part" err || { echo "$name: \"$part\" is not in: $(cat err)"; failed=1; }
}
head -2 hyp > short
refuses "line counts" 1 "standard input has 2 lines but ref1 has 3" bleu --reference ref1
refuses "line counts of chrF" 1 "short has 2 lines but ref2 has 3" chrf --reference ref2 short
refuses "no reference" 2 "--reference FILE is missing" bleu
refuses "missing file" 1 "nowhere: cannot read" bleu --reference nowhere
refuses "misspelt tokenizer" 2 'did you mean "intl"' bleu --reference ref1 --tokenize itnl
refuses "misspelt smoothing" 2 'did you mean "add-k"' bleu --reference ref1 --smooth addk
refuses "misspelt option" 2 "did you mean --lowercase" bleu --reference ref1 --lowercsae
refuses "negative value" 2 "from 0 to" bleu --reference ref1 --smooth floor --smooth-value -0.5
refuses "value without use" 2 "--smooth-value is for" bleu --reference ref1 --smooth-value 3
refuses "order out of range" 2 "--word-order" chrf --reference ref1 --word-order 99
: > empty
refuses "nothing to score" 1 "no sentence" bleu --reference empty empty

printf 'a\377b\n' > bad
printf 'a\377c\n' > worse
same "malformed UTF-8" "tarn bleu: warning: malformed UTF-8 sequences read as U+FFFD: 2" \
  "$("$TARN" bleu --reference bad worse 2>&1 > out)"
"$TARN" bleu --help | grep -q -- '--tokenize' || { echo "no help"; failed=1; }
exit $failed
