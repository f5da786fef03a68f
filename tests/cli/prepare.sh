#!/usr/bin/env bash
# tarn corpus, vocab and prepare on the command line: results, summaries, messages and exit codes.
set -euo pipefail

. "$(dirname "$0")/../helpers.sh"
# expect CODE TEXT COMMAND...: the command exits with this code and prints the text in one line.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  "$@" > out.txt 2> err.txt || got=$?
  [ "$got" = "$code" ] || fail "exit code $got instead of $code: $* ($(cat err.txt))"
  grep -qF -- "$text" out.txt err.txt || fail "\"$text\" is not in what $* says: $(cat out.txt err.txt)"
  if [ "$code" != 0 ]; then [ "$(wc -l < err.txt)" = 1 ] || fail "more than one line: $(cat err.txt)"; fi
}

"$TARN" corpus --output c --sentences 2000 --held-out 100
[ "$(wc -l < c/train.de)" = 2000 ] && [ "$(wc -l < c/test.en)" = 100 ] || fail "wrong numbers of lines"
"$TARN" corpus --output again --sentences 2000 --held-out 100
diff -r c again || fail "the corpus is not deterministic"
"$TARN" corpus --output other --sentences 2000 --held-out 100 --seed 2
! cmp -s c/train.de other/train.de || fail "the seed has no effect"
expect 2 "--output is missing" "$TARN" corpus

for type in bpe unigram whitespace; do
  "$TARN" vocab --type $type --size 800 --output $type.model c/train.de c/train.en 2> err.txt
  [ ! -s err.txt ] || fail "vocab is not silent: $(cat err.txt)"
  "$TARN" prepare --vocab $type.model --source c/valid.de --target c/valid.en --output data/$type --json > $type.json
  grep -q '"pairs":100,' $type.json || fail "wrong summary: $(cat $type.json)"
done
"$TARN" vocab --size 800 --output same.model c/train.de c/train.en
cmp bpe.model same.model || fail "the vocabulary is not deterministic"

expect 2 "did you mean bpe?" "$TARN" vocab --type bpee --output x c/train.de
expect 2 "an argument is missing" "$TARN" vocab --output x
expect 1 "no-such-file: cannot read" "$TARN" vocab --output x no-such-file
expect 1 "c/train.de: --size 900000 is too high: the text has no more than" "$TARN" vocab --size 900000 --output x c/train.de
expect 0 "--character-coverage" "$TARN" vocab --help
expect 0 "--overlong" "$TARN" prepare --help

p() { "$TARN" prepare --vocab bpe.model --output data/p "$@"; }
export -f p
export TARN
prepare() { expect "$1" "$2" p "${@:3}"; }
prepare 0 "pairs " --source c/valid.de --target c/valid.en
cp data/p.tarn keep.tarn
p --source c/valid.de --target c/valid.en > out.txt
cmp data/p.tarn keep.tarn || fail "prepare is not deterministic"
head -n 90 c/valid.en > short.en
prepare 1 "c/valid.de has 100 lines and short.en has 90: line 91 of c/valid.de has no partner" --source c/valid.de --target short.en
{ head -n 98 c/valid.de; printf 'Das ist \377 schlecht.\r\n\r\n'; } > bad.de
prepare 0 "invalid UTF-8 replaced in: 1 line" --source bad.de --target c/valid.en
grep -q "^1 pair left out: a side is empty$" out.txt || fail "the empty line is not reported"
prepare 1 "bad.de:99: invalid UTF-8 at byte 9" --source bad.de --target c/valid.en --strict
{ head -n 99 c/valid.de; head -c 300000 /dev/zero | sed 's/\x0\x0\x0/Ja /g'; echo; } > long.de
prepare 0 "truncated: 1 pair" --source long.de --target c/valid.en
prepare 0 "1 pair left out: a side is overlong" --source long.de --target c/valid.en --overlong drop
prepare 1 "long.de:100:" --source long.de --target c/valid.en --overlong refuse
prepare 2 "did you mean refuse?" --source long.de --target c/valid.en --overlong refus
prepare 2 "--target is missing" --source long.de
prepare 2 "unknown option --sauce; did you mean --source?" --sauce long.de
prepare 1 "c/valid.de: this is text; a vocabulary is a file that tarn vocab makes" --vocab c/valid.de --source c/valid.de --target c/valid.en
prepare 1 "data/p: there is no such file, and data/p.tarn is a shard; a vocabulary is a file that tarn vocab makes" --vocab data/p --source c/valid.de --target c/valid.en
# A text without line ends is not taken as one sentence, and non-text is detected wherever it is.
head -c 17000000 /dev/zero | tr '\0' 'x' > endless
prepare 1 "endless:1: this line has more than 16777216 bytes; is this a text without line ends?" --source endless --target c/valid.en
{ head -n 99 c/valid.en; printf 'one \0 two\n'; } > zero.en
prepare 1 "zero.en:100: a zero byte, which no text in UTF-8 has" --source c/valid.de --target zero.en
# The result does not depend on the number of threads.
p --source c/valid.de --target c/valid.en --threads 1 > out.txt
cmp data/p.tarn keep.tarn || fail "one thread gives another shard"
p --source c/valid.de --target c/valid.en --threads 3 > out.txt
cmp data/p.tarn keep.tarn || fail "three threads give another shard"
# Nor on how far a text is read ahead.
for _ in {1..20}; do cat c/train.de; done > often.de
for _ in {1..20}; do cat c/train.en; done > often.en
prepare 0 "pairs " --source often.de --target often.en --threads 1
cp data/p.tarn often.tarn
# Under sanitizers one of these reads all that the others do.
ways=("64M 1" "64M 3" "1G 2")
[ -z "${TARN_SAMPLE:-}" ] || ways=("64M 3")
for how in "${ways[@]}"; do
  p --source often.de --target often.en --memory "${how% *}" --threads "${how#* }" > out.txt
  cmp data/p.tarn often.tarn || fail "--memory ${how% *} with ${how#* } threads gives another shard"
done
prepare 2 '--memory is 64000k to 1000T, not "63M"' --source often.de --target often.en --memory 63M
prepare 2 '--memory takes a number such as 4G' --source often.de --target often.en --memory much
cp keep.tarn data/p.tarn
# A text that exceeds the memory limit is sampled for training a vocabulary.
vocab() { "$TARN" vocab --size 300 --output "$@" often.de often.en; }
vocab whole.model > out.txt
! grep drawn out.txt || fail "a sample of a text that fits"
vocab sample.model --memory 64M > out.txt
grep -q "^drawn .* of 80000 lines (--memory)$" out.txt || fail "no word of the sample: $(cat out.txt)"
if [ -z "${TARN_SAMPLE:-}" ]; then  # the bits are the same under sanitizers
  vocab again.model --memory 64M > out.txt
  cmp sample.model again.model || fail "the sample is not deterministic"
fi
! cmp -s sample.model whole.model || fail "the sample is the whole text"
expect 2 "give either --memory or --sentences" vocab x --memory 64M --sentences 1000
expect 2 "type char takes no --memory" vocab x --type char --memory 64M
# Several shards with an index are equivalent to one: the same training from both.
cat > model.yaml <<'END'
model: { d_model: 8, embeddings: all, max_length: 128 }
encoder: { layers: L }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 8 } }
data: { vocab: bpe.model, train: set/train, valid: set/train }
train: { max_updates: 6, max_tokens: 400, save_every: 3, threads: 1, tensorboard: no }
END
s() { "$TARN" prepare --vocab bpe.model --source c/train.de --target c/train.en --output set/train "$@"; }
s > out.txt
[ "$(ls set)" = train.tarn ] || fail "a small set has more than one file: $(ls set)"
"$TARN" inspect set/train | grep -q "^rows  *2000 pairs of sentences$" || fail "inspect of a shard"
"$TARN" train model.yaml --run one --quiet
s --shard-size 40k --threads 3 --memory 64M > out.txt
parts=$(grep -oP "^shards +\K[0-9]+(?= and their index$)" out.txt) || fail "no word of the parts: $(cat out.txt)"
[ "$parts" -ge 3 ] && [ "$(ls set | wc -l)" = $((parts + 1)) ] || fail "$parts parts: $(ls set)"
"$TARN" inspect set/train > out.txt
grep -q "^file  *set/train.tarn (index of shards)$" out.txt && grep -q "^rows  *2000 pairs" out.txt &&
  [ "$(grep -c "  set/train\.0[0-9]*-[0-9a-f]*\.tarn$" out.txt)" = "$parts" ] || fail "inspect of an index: $(cat out.txt)"
"$TARN" inspect set/train 2>&1 >/dev/null | grep -qx 'tarn inspect: there is no set/train; this is set/train.tarn' || fail "a name is completed without a word"
"$TARN" inspect set/train.tarn --json | grep -q '"rows":2000,' || fail "inspect --json of an index"
# A folder is taken as a run, whatever other files have its name.
mkdir set/train
expect 1 "set/train" "$TARN" inspect set/train
rmdir set/train
# So is a file, as itself.
echo text >set/train
expect 1 'tarn inspect: set/train: this is text; a model is' "$TARN" inspect set/train
"$TARN" plan model.yaml 2>&1 >/dev/null | grep -q '^tarn: set/train is text; the shard set/train.tarn is read$' || fail "a name is completed beside a file of that name"
rm set/train
"$TARN" train model.yaml --run several --quiet
# The tensors; the preceding header has times and hashes of the data.
tensors() { tail -c 10000 "$1/checkpoint_last.safetensors"; }
cmp <(tensors one) <(tensors several) || fail "parts train another model than one shard"
"$TARN" train model.yaml --run stopped --quiet --set train.max_updates=3
"$TARN" train --resume stopped --quiet --set train.max_updates=6
cmp <(tensors one) <(tensors stopped) || fail "parts resume another training"
mv set/train.0002-*.tarn gone
expect 1 "set/train.tarn: part 2: set/train.0002-" "$TARN" inspect set/train
expect 2 '--shard-size is 1k to 1000T, not "999"' s --shard-size 999
s > out.txt
[ "$(ls set)" = train.tarn ] || fail "old parts are left: $(ls set)"
# Windows of a text, and rows of whole sentences.
"$TARN" vocab --type byte --output byte.vocab
b() { "$TARN" prepare --vocab byte.vocab --output text/b "$@"; }
export -f b
printf '\xEF\xBB\xBFOne.\r\n\r\nTwo\nthr\xC3\xA4e \377' > text.txt
expect 0 "windows         6 of 4 lines, 23 bytes" b --text text.txt --stream 4
# The ids of its windows, minus the special tokens, are the bytes of the file.
tail -c 46 text/b.tarn | od -An -v -tu2 -w2 | awk '{ printf "%02x\n", $1 - 3 }' > ids.txt
od -An -v -tx1 -w1 text.txt | tr -d ' ' | cmp - ids.txt || fail "the windows are not the text"
expect 1 "text.txt:4: invalid UTF-8" b --text text.txt --stream 4 --strict
expect 1 "zero.en:100: a zero byte" b --text zero.en --stream 64
expect 0 "17000000 bytes" b --text endless --stream 512
expect 0 '"target_tokens":7,' "$TARN" prepare --vocab whitespace.model --output text/w --text <(printf 'a b\n\nc d e') --stream 5 --json
printf 'One two.\nThree.\n\n\nFour five six.\nSeven.\nEight nine ten.\n' > documents.txt
expect 0 "rows            3 of 5 sentences of 2 documents" b --text documents.txt --pack 24
expect 2 "--stream is for a text (--text)" p --source c/valid.de --target c/valid.en --stream 4
for other in "--max-tokens 1024" "--min-tokens 2" "--overlong truncate"; do
  # shellcheck disable=SC2086
  expect 2 "a stream has no ${other% *}: its windows leave nothing out" b --text text.txt --stream 4 $other
done
expect 2 "give either --stream or --pack" b --text text.txt --stream 4 --pack 4
: > empty
prepare 1 "no pair is left" --source empty --target empty
prepare 1 "empty: the vocabulary is empty" --vocab empty --source c/valid.de --target c/valid.en
prepare 0 "pairs " --source <(cat c/valid.de) --target <(cat c/valid.en)
cmp data/p.tarn keep.tarn || fail "a pipe gives another shard than a file"
cp keep.tarn data/p.tarn
prepare 1 "has 90" --source c/valid.de --target short.en
cmp data/p.tarn keep.tarn || fail "a failure damaged the old shard"
[ "$(ls data)" = "$(printf 'bpe.tarn\np.tarn\nunigram.tarn\nwhitespace.tarn')" ] || fail "files are left over: $(ls data)"
