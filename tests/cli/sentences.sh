# tarn sentences, and its output in tarn prepare with the lengths of an experiment.
set -u
. "$(dirname "$0")/../helpers.sh"

printf 'Dr. Hill came. He saw it. It was\n\nnothing new. No.\n' >text
"$TARN" sentences text --output one --json >summary || fail "sentences"
[ "$(cat summary)" = '{"lines":3,"paragraphs":2,"sentences":5,"replaced":0}' ] || fail "summary: $(cat summary)"
printf 'Dr. Hill came.\nHe saw it.\nIt was\nnothing new.\nNo.\n' | cmp - one || fail "sentences: $(cat one)"
"$TARN" sentences text --wrapped --output two >/dev/null
[ "$(sed -n 3p two)" = "It was" ] && [ "$(wc -l <two)" -eq 5 ] || fail "an empty line ends a paragraph: $(cat two)"
printf 'Am 3. Mai kam\nsie an. Ja.' >deutsch
"$TARN" sentences deutsch --language de --wrapped --output drei >out || fail "German"
printf 'Am 3. Mai kam sie an.\nJa.\n' | cmp - drei || fail "German: $(cat drei)"
grep -q 'sentences  *2$' out || fail "no count: $(cat out)"
printf '\n\nOne. Two.\nThree.\n\n \nFour.\n\n' >long
"$TARN" sentences long deutsch long --documents --output documents >/dev/null || fail "documents"
printf 'One.\nTwo.\nThree.\n\nFour.\n\nAm 3.\nMai kam\nsie an.\nJa.\n\nOne.\nTwo.\nThree.\n\nFour.\n' | cmp - documents ||
  fail "an empty line between documents alone: $(cat documents)"
refuse 2 'so --documents cannot find documents' "$TARN" sentences long --documents --wrapped
"$TARN" sentences text deutsch --output /dev/null --json | grep -q '"lines":5' || fail "two files"

"$TARN" vocab --type byte --output byte
"$TARN" prepare --vocab byte --text one --output shard --min-tokens 5 --max-tokens 13 --overlong drop >out || fail "prepare"
grep -q '^lines  *3 of 5 lines$' out && grep -q '^1 sentence left out: shorter than --min-tokens$' out && grep -q '^1 sentence left out: overlong$' out ||
  fail "lengths: $(cat out)"

# Packing ends rows at document ends, and puts whole sentences of more than 1,024 tokens into rows that hold them.
"$TARN" prepare --vocab byte --text documents --pack 50 --output packed >out || fail "packing"
grep -q ' of 12 sentences of 5 documents$' out && grep -q 'longest row' out || fail "packed: $(cat out)"
{ printf 'x%.0s' $(seq 1500); echo; } >wide
"$TARN" prepare --vocab byte --text wide --pack 2000 --output packed >out && grep -q 'longest row 1501$' out && ! grep -q truncated out ||
  fail "--max-tokens does not follow --pack: $(cat out)"

"$TARN" sentences text --language fr --output no 2>err
[ $? -eq 2 ] && grep -q 'en and de, not "fr"' err || fail "language: $(cat err)"
# Without --output, standard output has only sentences; they are appended to an existing file.
"$TARN" sentences text 2>err | cmp - one || fail "standard output"
grep -q 'sentences  *5$' err || fail "no summary beside standard output: $(cat err)"
echo before >log
"$TARN" sentences text --output /dev/stdout 2>&1 >>log || fail "/dev/stdout"
head -n 6 log | cmp - <(echo before; cat one) || fail "/dev/stdout replaces a file: $(cat log)"
echo before >log
"$TARN" sentences text --output /proc/thread-self/fd/1 2>&1 >>log || fail "/proc/thread-self/fd/1"
head -n 6 log | cmp - <(echo before; cat one) || fail "/proc/thread-self/fd/1 replaces a file: $(cat log)"
"$TARN" sentences missing --output no 2>err
[ $? -eq 1 ] && grep -q 'missing: cannot read' err || fail "no file: $(cat err)"
[ ! -e no ] || fail "a failure left a file"
exit 0
