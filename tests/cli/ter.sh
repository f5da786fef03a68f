# tarn ter: output and refusals. Expected numbers are sacreBLEU 2.6.0's.
set -u
failed=0
# same NAME EXPECTED GOT
same() {
  if [ "$2" != "$3" ]; then
    printf '%s:\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    failed=1
  fi
}

printf 'On the mat the cat sits.\nA man, he is riding a Bicycle.\n東京は大きい。\n' > hyp
printf 'The cat sits on the mat.\nA man is riding a bicycle!\n東京 は 大きい\n' > ref1
printf 'The cat is on the mat.\nHe is riding a bike.\n東京 は、大きい\n' > ref2
version=$("$TARN" ter --reference ref1 < hyp | sed -n 's/.*version://p')
case $version in tarn\ [0-9]*) ;; *) echo "no version in the signature: $version"; failed=1 ;; esac

same "corpus" "TER = 66.67 (edits = 10 ref_len = 15.0)
nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:$version" "$("$TARN" ter --reference ref1 < hyp)"
same "two references, all options" "TER = 36.36 (edits = 6 ref_len = 16.5)
nrefs:2|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes|version:$version" \
  "$("$TARN" ter --reference ref1 --reference ref2 --case-sensitive --normalized --no-punct --asian-support hyp)"
same "sentences" "14.29
42.86
100.00" "$("$TARN" ter --reference ref1 --normalized --sentence < hyp)"
case $("$TARN" ter --json --reference ref1 hyp) in
  '{"name":"TER","score":66.6666666'*'"signature":"nrefs:1|'*'"edits":10,"ref_len":15.0,"invalid_utf8":0}') ;;
  *) echo "unexpected JSON: $("$TARN" ter --json --reference ref1 hyp)"; failed=1 ;;
esac

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
refuses "line counts" 1 "standard input has 2 lines but ref1 has 3" ter --reference ref1
refuses "no reference" 2 "--reference FILE is missing" ter
refuses "misspelt option" 2 "did you mean --normalized" ter --reference ref1 --normalised
: > empty
refuses "nothing to score" 1 "no sentence" ter --reference empty empty

# A zero byte is refused, malformed UTF-8 is counted; an unterminated last line counts; empty references.
printf 'a\000b c\nd' > zero
refuses "a zero byte" 1 "zero:1: a zero byte" ter --reference zero zero
printf 'a\377b c\nd\377' > odd
printf '\n\n' > nothing
same "malformed UTF-8" "tarn ter: warning: malformed UTF-8 sequences read as U+FFFD: 2" \
  "$("$TARN" ter --reference nothing odd 2>&1 > out)"
same "empty references" "TER = 100.00 (edits = 3 ref_len = 0.0)" "$(head -1 out)"
same "nothing to edit" "TER = 0.00 (edits = 0 ref_len = 0.0)" "$(printf '\n \n' | "$TARN" ter --reference nothing 2> err | head -1)"
same "a reference as a system" "tarn ter: warning: ref1 has the very lines of the reference ref1" \
  "$("$TARN" ter --reference ref1 ref1 2>&1 > out)"
same "no edit" "TER = 0.00 (edits = 0 ref_len = 15.0)" "$(head -1 out)"
exit $failed
