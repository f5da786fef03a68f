# GPT-2's, byte and character vocabularies from the command line, and the lengths of an experiment with BOS and EOS.
set -u
. "$(dirname "$0")/../helpers.sh"

toy="$TARN_SOURCE_DIR/tests/golden/gpt2_toy"
"$TARN" vocab --import-gpt2 "$toy" --output gpt2 || fail "import of a folder"
"$TARN" vocab --import-gpt2 "$toy/merges.txt" --output again || fail "import of a file"
cmp gpt2 again || fail "the imports differ"
cp "$toy/vocab.json" encoder.json && cp "$toy/merges.txt" vocab.bpe
"$TARN" vocab --import-gpt2 . --output again && cmp gpt2 again || fail "OpenAI's names"
"$TARN" vocab --type byte --output byte || fail "byte"
printf 'ab\xc3\xa4\na b\n' >text
"$TARN" vocab --type char --minimum-count 2 --output char text || fail "char"
[ "$("$TARN" encode --vocab char <text)" = "$(printf 'a b <unk>\na <unk> b')" ] || fail "characters: $("$TARN" encode --vocab char <text)"
[ "$("$TARN" encode --vocab byte --ids <text)" = "$(printf '100 101 198 167\n100 35 101')" ] || fail "bytes"
[ "$("$TARN" encode --vocab gpt2 <text | tr -d ' ')" = "$(printf 'ab\xc3\x83\xc2\xa4\na\xc4\xa0b')" ] || fail "GPT-2"

# <cls>, <sep> and <mask>
"$TARN" vocab --type byte --mask-symbols --output masked || fail "byte with symbols"
[ "$(echo 259 104 261 105 260 | "$TARN" decode --vocab masked --ids)" = ef ] || fail "symbols give text"
[ "$("$TARN" encode --vocab masked --ids <text)" = "$("$TARN" encode --vocab byte --ids <text)" ] || fail "bytes differ"
"$TARN" vocab --type char --mask-symbols --output masked text >/dev/null || fail "char with symbols"
[ "$("$TARN" encode --vocab masked --ids <text | head -1)" = "6 7 9" ] || fail "ids behind symbols: $("$TARN" encode --vocab masked --ids <text)"

# At most 128 tokens and at least 6, with BOS and EOS: BOS is not a token of a line here, so 127 and 5.
for n in 3 4 126 127; do printf "%0${n}d\n" 0; done >lengths
"$TARN" prepare --vocab byte --text lengths --output shard --min-tokens 5 --max-tokens 127 --overlong drop --json >json ||
  fail "prepare"
grep -q '"pairs":2,.*"brief":1,"dropped":1,.*"longest_target":127,' json || fail "lengths: $(cat json)"

# BERT's vocab.txt, with the given case
bert="$TARN_SOURCE_DIR/tests/golden/wordpiece_toy"
mkdir bert && cp "$bert/vocab.txt" bert && echo '{"do_lower_case": false}' >bert/tokenizer_config.json
"$TARN" vocab --import-wordpiece bert --output cased && "$TARN" vocab --import-wordpiece "$bert" --cased --output again ||
  fail "import of BERT's"
cmp cased again || fail "the case that is said, and --cased"
"$TARN" vocab --import-wordpiece bert --lowercase --output uncased && "$TARN" vocab --import-wordpiece "$bert" --output again &&
  cmp uncased again || fail "uncased"
[ "$(echo "The reservoir layers, we'll" | "$TARN" encode --vocab uncased)" = "the reservoir layers , we ' ll" ] ||
  fail "pieces: $(echo "The reservoir layers, we'll" | "$TARN" encode --vocab uncased)"
[ "$(echo "The reservoir layers, we" | "$TARN" encode --vocab bert | "$TARN" decode --vocab bert)" = "The reservoir layers, we" ] ||
  fail "decoding"
refuse 2 "takes neither --type nor text files" "$TARN" vocab --import-wordpiece bert --output x text
refuse 2 "takes neither --type nor text files" "$TARN" vocab --import-wordpiece bert --type bpe --output x
refuse 2 "--import-wordpiece takes a vocabulary as it is, without --size" \
  "$TARN" vocab --import-wordpiece bert --size 100 --output x
refuse 2 "exclude each other" "$TARN" vocab --import-wordpiece bert --import-gpt2 . --output x
refuse 2 "exclude each other" "$TARN" vocab --import-wordpiece bert --cased --lowercase --output x
refuse 2 "goes with --import-wordpiece" "$TARN" vocab --cased --output x text
refuse 2 "vocab.txt, or a folder" "$TARN" vocab --import-wordpiece nowhere --output x
refuse 1 "cannot read" "$TARN" vocab --import-wordpiece nowhere/vocab.txt --output x
echo '{"do_lower_case": 1}' >bert/tokenizer_config.json
refuse 1 "\"do_lower_case\" must be true or false" "$TARN" encode --vocab bert

refuse 2 "one of these files" "$TARN" vocab --import-gpt2 nowhere --output x
refuse 2 "neither --type nor text files" "$TARN" vocab --import-gpt2 . --output x text
refuse 2 "an argument is missing" "$TARN" vocab --type char --output x
refuse 2 "bpe, unigram, whitespace, byte or char, not" "$TARN" vocab --type qqqqqqqq --output x text
for option in "--lowercase" "--size 300" "--character-coverage 0.99" "--byte-fallback" "--minimum-count 2" "--sentences 10" "--threads 3" "--memory 1G"; do
  # shellcheck disable=SC2086
  refuse 2 "it is, without ${option%% *}" "$TARN" vocab --import-gpt2 . $option --output x
  # shellcheck disable=SC2086
  refuse 2 "type byte takes no ${option%% *}" "$TARN" vocab --type byte $option --output x
done
refuse 2 "it is, without --mask-symbols" "$TARN" vocab --import-gpt2 . --mask-symbols --output x
"$TARN" vocab --import-gpt2 . --json --output imported | grep -qxF '{"output":"imported","from":"."}' || fail "--json of an import"
refuse 2 "it takes no text" "$TARN" vocab --type byte --output x text
# A text of many scripts: it says what its characters take.
{ jq -rn 'range(19968; 21068) | [.] | implode'; for _ in {1..12000}; do echo "a b c a b c"; done; } >scripts
"$TARN" vocab --size 1120 --output x scripts >out.txt 2>error.txt || fail "many scripts: $(cat error.txt)"
grep -q "^tokens of one character: 110[0-9] of 1120; --character-coverage 0.9995 or --byte-fallback leaves out the rarest$" out.txt ||
  fail "no word of the characters: $(cat out.txt)"
"$TARN" vocab --size 264 --byte-fallback --character-coverage 0.98 --output x scripts >out.txt 2>error.txt || fail "bytes: $(cat error.txt)"
[ "$(printf 'a 猫\n' | "$TARN" encode --vocab x | "$TARN" decode --vocab x)" = "a 猫" ] || fail "a character of bytes"
[ "$(printf 'a 猫\n' | "$TARN" encode --vocab x)" = "▁a ▁ <0xE7> <0x8C> <0xAB>" ] || fail "bytes: $(printf 'a 猫\n' | "$TARN" encode --vocab x)"
rm x
refuse 2 "type whitespace takes no --character-coverage" \
  "$TARN" vocab --type whitespace --character-coverage 1 --output x text
refuse 2 "type whitespace takes no --sentences" "$TARN" vocab --type whitespace --sentences 10 --output x text
refuse 2 "type bpe takes no --minimum-count" "$TARN" vocab --minimum-count 1 --output x text
sed 's/"a": [0-9]*/"a": 640/' encoder.json >vocab.json && cp vocab.bpe merges.txt
refuse 1 "./vocab.json: \"a\" has the id 640, but the ids of 640 tokens are 0 to 639" "$TARN" vocab --import-gpt2 . --output x
cp encoder.json vocab.json && rm merges.txt
refuse 1 "merges.txt: cannot read" "$TARN" encode --vocab .
[ ! -e x ] || fail "a refused vocabulary is written"

# Normalization: joiners that spell words are kept automatically, which is reported and shown.
zwnj=$(printf '\xE2\x80\x8C')
for _ in $(seq 120); do printf 'می%sخواهم کتاب%sها را\n' "$zwnj" "$zwnj"; done >persian
head -1 persian >one
kept() { # VOCABULARY NAME kept|lost
  "$TARN" inspect "$1" | grep -qxF "normalization $2; U+200C and U+200D are $3" || fail "inspect: $("$TARN" inspect "$1")"
  "$TARN" encode --vocab "$1" <one | "$TARN" decode --vocab "$1" >back
  if [ "$3" = kept ]; then cmp -s one back || fail "$2: $(cat back)"; else tr -d '\n' <back | grep -qF "$zwnj" && fail "$2: $(cat back)"; fi
  return 0
}
"$TARN" vocab --size 30 persian --output joined >told
grep -qx 'letters joined by U+200C or U+200D in: 120 lines, normalization nmt_nfkc_joiners' told || fail "told: $(cat told)"
kept joined nmt_nfkc_joiners kept
"$TARN" vocab --size 30 --sentences 101 persian --output drawn --json | grep -q '"joined":120,"normalization":"nmt_nfkc_joiners"}$' || fail "drawn sentences"
"$TARN" vocab --size 30 --normalization nmt_nfkc persian --output lost --json | grep -q '"normalization":"nmt_nfkc"}$' || fail "nmt_nfkc"
kept lost nmt_nfkc lost
"$TARN" prepare --vocab lost --text persian --output p 2>warned >told
grep -qxF 'tarn: warning: persian: 120 of 120 lines spell words with U+200C or U+200D, which lost loses (normalization nmt_nfkc); tarn vocab can make one that keeps them' warned || fail "warned: $(cat warned)"
"$TARN" prepare --vocab lost --text persian --stream 16 --output p 2>warned >told
grep -qF '120 of 120 lines spell words' warned || fail "a stream: $(cat warned)"
paste persian <(seq 120) >persian.tsv
"$TARN" prepare --vocab lost --table persian.tsv --text 1 --labels 2 --output p 2>warned >told
grep -qF '120 of 120 lines spell words' warned || fail "a table: $(cat warned)"
"$TARN" prepare --vocab joined --text persian --output p 2>warned >told
[ ! -s warned ] || fail "warned without cause: $(cat warned)"
"$TARN" vocab --size 30 --normalization identity persian --output same >told
kept same identity kept
exactly 1 'tarn vocab: /dev/stdin: 120 lines spell words with U+200C or U+200D, which the default normalization loses, and a pipe cannot be looked at before a number of sentences is drawn from it; give --normalization nmt_nfkc_joiners, or nmt_nfkc to lose them' \
  "$TARN" vocab --size 30 --sentences 101 /dev/stdin --output x < <(cat persian)
"$TARN" vocab --size 30 --sentences 101 --normalization nmt_nfkc_joiners /dev/stdin --output piped < <(cat persian) >told
cmp drawn piped || fail "a pipe gives another vocabulary"
exactly 2 'tarn vocab: --normalization cannot be "nfck"; did you mean nfkc? (see tarn vocab --help)' "$TARN" vocab --normalization nfck persian --output x
exactly 2 'tarn vocab: --type char takes no --normalization (see tarn vocab --help)' "$TARN" vocab --type char --normalization nfkc persian --output x
exactly 2 'tarn vocab: --lowercase is --normalization nmt_nfkc_cf: give one of the two (see tarn vocab --help)' "$TARN" vocab --lowercase --normalization nfkc persian --output x
"$TARN" inspect --json lost | grep -qF '"kind":"SentencePiece bpe","tokens":30,"special":{"unknown":0,"begin":1,"end":2,"padding":null,"cls":null,"sep":2,"mask":null},"normalization":"nmt_nfkc","keeps_joiners":false' || fail "inspect --json: $("$TARN" inspect --json lost)"
[ ! -e x ] || fail "a refused vocabulary is written"
exit 0
