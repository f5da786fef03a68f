# No text is lost silently: tarn vocab, prepare and encode report what they leave out, cut or do not know.
set -u
. "$(dirname "$0")/../tiny_run.sh"
says() { grep -qF -- "$1" "$2" || fail "no \"$1\" in: $(cat "$2")"; }

# A novel in a few lines, as in BabyLM: one line of 400 kB and one of 8 kB.
words="der Mann sieht das Haus und die Frau sucht den Garten bis der Regen kommt"
novel() { for _ in $(seq "$1"); do printf '%s ' "$words"; done; echo; }
{ novel 5500; novel 110; } >novel
"$TARN" vocab --size 60 --output v novel >out.txt 2>error.txt || fail "vocab: $(cat error.txt)"
says "bytes, 100.00 % used" out.txt
says "longer than 65536 bytes and split at white space: 1 line; lines and parts that are not empty: 8" out.txt
"$TARN" vocab --size 60 --output v --json novel >out.txt || fail "vocab --json"
says "\"lines\":2,\"bytes\":$(tr -d '\n' <novel | wc -c),\"used_bytes\":$(tr -d '\n' <novel | wc -c),\"used\":1.0" out.txt

# SentencePiece's trainers abort on words of some ten thousand letters.
{ novel 110; head -c 70000 /dev/zero | tr '\0' x; echo; } >word
for type in bpe unigram; do
  "$TARN" vocab --type $type --size 40 --output w word >out.txt 2>error.txt || fail "a long word, $type: $(cat error.txt)"
  says "bytes, 100.00 % used" out.txt
  "$TARN" vocab --type $type --size 40 --output w --json word | grep -q '"split_words":4' || fail "split words, $type"
  "$TARN" vocab --type $type --size 40 --output w word >told.txt 2>&1 || fail "split words, $type"
  [ "$(grep -c 'split within\|were split' told.txt)" = 1 ] || fail "split words are not told once: $(cat told.txt)"
done

printf '  \n \n' >blank
"$TARN" vocab --type char --output x blank >out.txt 2>error.txt || fail "blanks: $(cat error.txt)"
says "text              0 bytes, 100.00 % used" out.txt
rm x

# A loss above the limit is a failure, unless allowed.
iconv -f UTF-8 -t ISO-8859-1 <<<"Die Tür führt in den schönen Garten zurück" >latin1
refuse 1 "9.5 % of the text cannot be used.*--allow-loss" "$TARN" vocab --type whitespace --output x latin1
[ ! -e x ] || fail "a refused vocabulary is written"
"$TARN" vocab --type whitespace --allow-loss --output x latin1 >out.txt 2>error.txt || fail "--allow-loss: $(cat error.txt)"
says "text             42 bytes, 90.48 % used" out.txt
says "invalid UTF-8 replaced in: 1 line, 4 bytes" out.txt
[ "$(cat out.txt error.txt | grep -c 'invalid UTF-8')" = 1 ] || fail "told twice: $(cat error.txt)"
refuse 2 "type byte takes no --allow-loss" "$TARN" vocab --type byte --allow-loss --output x

# Every command that reads text refuses non-text, and names it.
iconv -f UTF-8 -t UTF-16 novel >utf16
iconv -f UTF-8 -t UTF-16BE novel >utf16be
printf 'eins\nzw\0ei\n' >zero
printf 'BZh91AY&SY and more' >novel.bz2
for file in utf16 utf16be; do
  refuse 1 "^tarn vocab: $file: this is text in UTF-16;" "$TARN" vocab --output x $file
  refuse 1 "^tarn prepare: $file: this is text in UTF-16;" "$TARN" prepare --vocab v --text $file --output x
  refuse 1 "^tarn prepare: $file: this is text in UTF-16;" "$TARN" prepare --vocab v --source novel --target $file --output x
  refuse 1 "^tarn sentences: $file: this is text in UTF-16;" "$TARN" sentences --output x $file
  refuse 1 "^tarn bleu: $file: this is text in UTF-16;" "$TARN" bleu --reference $file novel
  refuse 1 "^tarn encode: standard input: this is text in UTF-16;" "$TARN" encode --vocab v <$file
done
refuse 1 "^tarn prepare: zero:2: a zero byte" "$TARN" prepare --vocab v --text zero --output x
refuse 1 "^tarn prepare: novel.bz2: this is a compressed file;.*unpack it" "$TARN" prepare --vocab v --text novel.bz2 --output x
refuse 1 "^tarn chrf: zero:2: a zero byte" "$TARN" chrf --reference novel zero
printf '5 6\n5\0 6\n' >tokens
"$TARN" decode --vocab v --ids <tokens >out.txt 2>error.txt && fail "tarn decode takes a zero byte"
says "tarn decode: standard input:2: a zero byte" error.txt

# A byte order mark at the start is not part of the text.
{ printf '\xef\xbb\xbf'; head -c 500 novel; } >marked
head -c 500 novel >plain
cmp <("$TARN" encode --vocab v <marked) <("$TARN" encode --vocab v <plain) || fail "a byte order mark is encoded"

# prepare counts what it leaves out, cuts off and does not know, and warns if it is too much.
"$TARN" prepare --vocab v --text novel --output shard >out.txt 2>error.txt || fail "prepare: $(cat error.txt)"
says "tarn: warning: novel: 98." error.txt
says "% of its tokens were cut off, because sentences are longer than 1024 tokens; tarn sentences" error.txt
says "truncated: 2 sentences" out.txt
says "longer than 65536 bytes, encoded in parts: 1 line, 0 parts end within a word" out.txt
"$TARN" prepare --vocab v --text novel --output shard --max-tokens 1000000 --json >out.txt 2>error.txt || fail "prepare"
[ ! -s error.txt ] || fail "a warning without a loss: $(cat error.txt)"
says '"cut":1,"split":0,"source_left_out":0,"target_left_out":0,' out.txt
tokens=$(grep -o '"target_tokens":[0-9]*' out.txt | grep -o '[0-9]*')
"$TARN" prepare --vocab v --text novel --output shard --overlong drop --max-tokens 50000 --json >json 2>error.txt || fail "drop"
kept=$(grep -o '"target_tokens":[0-9]*' json | grep -o '[0-9]*')
says "\"target_left_out\":$((tokens - kept - 1))," json  # without the end of its sentence
# An empty side of a pair drops the other side too.
printf 'der Mann\n\n' >a && printf 'das Haus\nder Regen\n' >b
"$TARN" prepare --vocab v --source a --target b --output shard >out.txt 2>error.txt || fail "pairs: $(cat error.txt)"
grep -q '^target *[0-9]* tokens left out' out.txt || fail "the other side of an empty line is not counted: $(cat out.txt)"
printf '%s\n' "$words" "Привет, как дела?" >foreign
"$TARN" prepare --vocab v --text foreign --output shard >out.txt 2>error.txt || fail "unknown: $(cat error.txt)"
grep -q "^tarn: warning: foreign: [0-9.]* % of its tokens are unknown to v;" error.txt || fail "unknown: $(cat error.txt)"
"$TARN" encode --vocab v <novel 2>error.txt >/dev/null || fail "encode"
says "longer than 65536 bytes, encoded in parts: 1 line" error.txt

# The commands of a model report unknown tokens and truncation.
"$TARN" vocab --size 200 --output pieces corpus/train.de corpus/train.en >/dev/null || fail "vocab"
for part in train valid; do
  "$TARN" prepare --vocab pieces --source corpus/$part.de --target corpus/$part.en --output $part >/dev/null || fail "prepare"
  "$TARN" prepare --vocab pieces --text corpus/$part.de --output text_$part >/dev/null || fail "prepare"
done
"$TARN" train model.yaml --run mt --set data.vocab=pieces --set train.max_updates=2 >train.txt 2>&1 || fail "$(cat train.txt)"
"$TARN" train model.yaml --run lm --set data.vocab=pieces --set train.max_updates=2 --set encoder= \
  --set data.train=text_train --set data.valid=text_valid --set model.embeddings=decoder >train.txt 2>&1 || fail "$(cat train.txt)"
printf 'Der Mann\nПривет\n' >foreign
head -n 1 novel >long
"$TARN" translate mt --input foreign >out.txt 2>error.txt || fail "translate: $(cat error.txt)"
grep -q "tarn translate: warning: [0-9.]* % of the source tokens are unknown to the model's vocabulary;" error.txt ||
  fail "translate does not warn: $(cat error.txt)"
"$TARN" score lm foreign >out.txt 2>error.txt || fail "score: $(cat error.txt)"
grep -q "tarn score: warning: [0-9.]* % of the tokens are unknown" error.txt || fail "score does not warn: $(cat error.txt)"
"$TARN" generate lm --prompt Привет --max-tokens 2 >out.txt 2>error.txt || fail "generate: $(cat error.txt)"
grep -q "tarn generate: warning: [0-9.]* % of the tokens of prompts are unknown" error.txt || fail "generate does not warn: $(cat error.txt)"
"$TARN" translate mt --input long >out.txt 2>error.txt || fail "translate: $(cat error.txt)"
says "longer than 65536 bytes, encoded in parts: 1 line" error.txt
"$TARN" score lm long --overlong truncate >out.txt 2>error.txt || fail "score: $(cat error.txt)"
says "longer than 65536 bytes, encoded in parts: 1 line" error.txt
head -n 1 corpus/valid.de >known
for command in "translate mt --input known" "score lm known"; do
  # shellcheck disable=SC2086
  "$TARN" $command >out.txt 2>error.txt || fail "$command"
  ! grep -q "warning\|in parts" error.txt || fail "$command says something of an ordinary line: $(cat error.txt)"
done
mkdir pairs
printf '{"sentence_good": "ja", "sentence_bad": "nein"}\n' | iconv -f UTF-8 -t UTF-16 >pairs/p.jsonl
for command in "translate mt --input utf16" "score lm utf16" "generate lm --input utf16" "blimp lm pairs"; do
  # shellcheck disable=SC2086
  refuse 1 "this is text in UTF-16;" "$TARN" $command
done

# SentencePiece needs 220 bytes of memory per byte of a line: 880 MB for one of 4 MB.
if [ -z "${TARN_SANITIZED:-}" ]; then
  yes "$words" | head -c 4000000 | tr '\n' ' ' >huge
  (ulimit -v 700000 && exec "$TARN" encode --vocab v --ids <huge >ids 2>error.txt) || fail "4 MB in 700 MB: $(cat error.txt)"
  [ "$(wc -w <ids)" -gt 500000 ] || fail "too few tokens of 4 MB"
fi
exit 0
