# tarn generate: methods, seeds, prompts, ends, JSON, bytes, bad input, with models trained here.
set -u
. "$(dirname "$0")/../helpers.sh"
refuse_prompt() {  # CODE PATTERN ARGUMENT...
  local code=$1 pattern=$2
  shift 2
  refuse "$code" "$pattern" "$TARN" generate "$@" </dev/null
}
generate() { "$TARN" generate "$@" --threads 2 2>summary.txt || fail "generate $*: $(cat summary.txt)"; }

"$TARN" corpus --output corpus --sentences 300 --held-out 20 || fail "corpus"
"$TARN" vocab --type bpe --size 200 --output vocab.model corpus/train.en 2>vocab.txt || fail "vocab: $(cat vocab.txt)"
"$TARN" vocab --type byte --output byte.vocab || fail "byte vocabulary"
"$TARN" vocab --type whitespace --size 100 --output words.vocab corpus/train.en 2>vocab.txt || fail "$(cat vocab.txt)"
train() {  # RUN VOCAB MODEL LAYERS
  "$TARN" prepare --vocab "$2" --text corpus/train.en --output "$1-data" >/dev/null || fail "prepare $1"
  cat >"$1.yaml" <<END
model: { d_model: 32, dropout: 0, $3 }
decoder: { layers: $4 }
kinds:
  L: { mixer: attention, heads: 2, ffn: 64 }
  G: { mixer: gru, hidden: 32, residual: no }
data: { vocab: $2, train: $1-data }
train: { max_updates: 120, max_tokens: 1000, lr: 0.01, warmup: 20 }
END
  "$TARN" train "$1.yaml" --run "$1" --threads 2 >train.txt 2>&1 || fail "train $1: $(tail -n 3 train.txt)"
}
train attention vocab.model "max_length: 40, positions: learned" L
train recurrent vocab.model "max_length: 40, positions: none, embeddings: none" G
train bytes byte.vocab "max_length: 200, positions: none" G
train words words.vocab "max_length: 40" L

for run in attention recurrent; do
  # Greedy is the default, equal to a beam of 1, an empty nucleus and top_k 1.
  generate $run --prompt "The old" --max-tokens 20 >greedy.txt
  grep -q '^The old' greedy.txt || fail "the prompt is not there: $(cat greedy.txt)"
  grep -Eq '^1 prompt, [0-9]+ prompt tokens?, 1 text, [0-9]+ tokens? in .* tokens/s$' summary.txt ||
    fail "no summary: $(cat summary.txt)"
  for options in "--beam 1" "--top-k 1" "--top-p 0.000001" "--temperature 0.00001"; do
    # shellcheck disable=SC2086
    generate $run --prompt "The old" --max-tokens 20 $options | cmp -s greedy.txt - || fail "$run: $options is not greedy"
  done
  # Prompts from the command line, a file and a pipe; windows and threads make no difference.
  printf 'The old\n\nAnna' >prompts
  generate $run --prompt "The old" --prompt "" --prompt Anna --top-p 0.9 --number 4 >several.txt
  [ "$(wc -l <several.txt)" -eq 12 ] || fail "12 texts give $(wc -l <several.txt) lines"
  generate $run --input prompts --top-p 0.9 --number 4 | cmp -s several.txt - || fail "$run: a file is not the prompts"
  generate $run --input - --window 2 --top-p 0.9 --number 4 <prompts | cmp -s several.txt - || fail "$run: a pipe"
  generate $run --top-p 0.9 --number 4 | cmp -s <(sed -n 5,8p several.txt) - || fail "$run: no prompt is an empty one"
  "$TARN" generate $run --prompt Anna --top-p 0.9 --number 4 --threads 1 --output alone.txt 2>/dev/null || fail "alone"
  cmp -s <(sed -n 9,12p several.txt) alone.txt || fail "$run: other prompts or threads change a sample"
  generate $run --prompt Anna --top-p 0.9 --number 4 --seed 1 --output - | cmp -s alone.txt - || fail "$run: the seed is not 1"
  generate $run --prompt Anna --top-p 0.9 --number 4 --seed 2 >other.txt
  [ "$(wc -l <other.txt)" -eq 4 ] || fail "$run: a seed gives no samples"
  cmp -s alone.txt other.txt && fail "$run: the seed does nothing"
  [ "$(sort -u alone.txt | wc -l)" -gt 1 ] || fail "$run: all samples are equal"
  # Beams are sorted by score.
  generate $run --beam 6 --number 6 --scores --length-penalty 0.5 >beam.txt
  [ "$(wc -l <beam.txt)" -eq 6 ] && cut -f 1 beam.txt | sort -rg | cmp -s - <(cut -f 1 beam.txt) ||
    fail "$run: the beam is not sorted: $(cat beam.txt)"
  # Files of other precisions compute what the run does in theirs.
  for precision in bf16 int8 int4; do
    generate $run --max-tokens 20 --precision $precision >$precision.txt
    "$TARN" export --precision $precision $run $run.$precision 2>error.txt || fail "export in $precision: $(cat error.txt)"
    [ "$("$TARN" inspect --json $run.$precision | jq -r .precision)" = $precision ] || fail "$run.$precision is in another"
    generate $run.$precision --max-tokens 20 --precision $precision | cmp -s $precision.txt - || fail "$run.$precision: another text"
    "$TARN" score $run.$precision corpus/test.en --precision $precision >scores.txt 2>error.txt || fail "$(cat error.txt)"
    "$TARN" score $run corpus/test.en --precision $precision 2>error.txt | cmp -s scores.txt - || fail "$run.$precision: other scores"
  done
done
refuse_prompt 2 'attention.int8: it holds int8, which .*; the precision cannot be fp32' attention.int8 --precision fp32

# Penalties, banned texts and stop strings; a text does not depend on its neighbours.
printf 'The old\nAnna\n\nThe young' >prompts
generate attention --input prompts --max-tokens 20 >without.txt
for options in "--repetition-penalty 1.4" "--no-repeat-ngram 2" "--presence-penalty 2 --frequency-penalty 0.5" \
  "--beam 4 --no-repeat-ngram 1" "--beam 4 --groups 2 --diversity-penalty 0.7" "--min-p 0.1 --frequency-penalty 1" \
  "--typical-p 0.6" "--stop e --stop he" "--stop o --beam 3"; do
  # shellcheck disable=SC2086
  generate attention --input prompts --max-tokens 20 $options >together.txt
  # shellcheck disable=SC2086
  generate attention --prompt Anna --max-tokens 20 $options | cmp -s - <(sed -n 2p together.txt) ||
    fail "$options: neighbours change a text"
  cmp -s together.txt without.txt && fail "$options: has no effect"
done
generate attention --prompt "The old" --max-tokens 20 --no-repeat-ngram 1 --json >json.txt
jq -e '[.texts[0].pieces[][1]] | length == (unique | length)' json.txt >pieces.txt || fail "a token stands twice: $(cat json.txt)"
plain=$(generate attention --prompt "The old" --max-tokens 20 --json | jq -r '.texts[0].continuation')
for stop in "${plain:5:3}" "${plain:2:6}"; do  # strings across tokens
  generate attention --prompt "The old" --max-tokens 20 --stop "$stop" --json >json.txt
  [ "$(jq -r '.texts[0].end' json.txt)" = stop ] || fail "\"$stop\" does not stop: $(cat json.txt)"
  [ "$(jq -r '.texts[0].continuation' json.txt)X" = "${plain%%"$stop"*}X" ] || fail "\"$stop\" of \"$plain\": $(cat json.txt)"
  generate attention --prompt "The old" --max-tokens 20 --stop "$stop" --stream >stream.txt
  [ "$(cat stream.txt)X" = "The old${plain%%"$stop"*}X" ] || fail "a stream with a stop string: $(cat stream.txt)"
done
generate words --prompt Anna --max-tokens 20 --min-tokens 20 --json >json.txt
word=$(jq -r '.texts[0].pieces[3][0]' json.txt)
generate words --prompt Anna --max-tokens 20 --min-tokens 20 --banned "$word" --json >json.txt
jq -e --arg word "$word" '[.texts[0].pieces[][0]] | index($word) | not' json.txt >pieces.txt || fail "banned, and there: $(cat json.txt)"
generate attention --prompt "The old" --prompt Anna --max-tokens 20 >plain.txt
generate attention --prompt "The old" --prompt Anna --max-tokens 20 --stream | cmp -s plain.txt - || fail "a stream is another text"
generate bytes --prompt Stra --temperature 5 --max-tokens 40 --json >json.txt
generate bytes --prompt Stra --temperature 5 --max-tokens 40 --stream >stream.txt
[ "$(cat stream.txt)" = "$(jq -r '.texts[0].text' json.txt)" ] || fail "a stream of bytes: $(od -c stream.txt)"

# The score of a complete text equals that of tarn score: the tokens of a byte vocabulary are those of the text.
generate bytes --top-p 0.9 --number 20 --max-tokens 150 --scores >scored.txt
generate bytes --top-p 0.9 --number 20 --max-tokens 150 --json | grep -o '"end":"[a-z_]*"' >ends.txt
[ "$(wc -l <ends.txt)" -eq 20 ] || fail "ends of 20 texts: $(cat ends.txt)"
paste ends.txt scored.txt | grep '^"end":"eos"' | LC_ALL=C grep -v "[^$(printf '\t') -~]" | cut -f 2,3 >ended.txt
[ -s ended.txt ] || fail "no text ends with its sentence: $(paste ends.txt scored.txt)"
cut -f 2 ended.txt | "$TARN" score bytes 2>/dev/null | awk '{ print $1 / $2 }' | paste - ended.txt |
  awk '{ d = $1 - $2; if (d > 1e-4 || d < -1e-4) exit 1 }' || fail "tarn score disagrees: $(cat ended.txt)"

# Ends: the requested number of tokens, the model's positions; a model without positions has no limit.
generate attention --max-tokens 3 --min-tokens 3 --json >json.txt
grep -q '"end":"max_tokens".*"tokens":3,' json.txt || fail "max_tokens: $(cat json.txt)"
generate attention --min-tokens 90 --json --prompt "The old" >json.txt
grep -q '"end":"max_length"' json.txt || fail "max_length: $(cat json.txt)"
generate recurrent --min-tokens 100 --json >json.txt
grep -q '"end":"max_tokens".*"tokens":100,' json.txt || fail "a recurrent model has an end: $(cat json.txt)"
grep -Eq '^\{"index":0,"prompt_tokens":0,"unknown":0,"texts":\[\{"text":".*","continuation":".*","end":".*","log_probability":-[0-9.]+,"score":-[0-9.]+,"tokens":100,"pieces":\[\[".*",[0-9]+,-[0-9.e-]+\].*\]\}\],"checkpoint":"recurrent/checkpoint_last.safetensors"\}$' \
  json.txt || fail "JSON: $(cat json.txt)"
long=$(yes Anna | head -n 60 | tr '\n' ' ')
refuse_prompt 1 'prompt 1: .* tokens, and the model takes 39 before the next one' attention --prompt "$long"
generate recurrent --prompt "$long" --max-tokens 2 >/dev/null

# Bytes: a prompt may end within a character, and remaining invalid UTF-8 is replaced.
for options in "" "--temperature 5 --number 20"; do
  # shellcheck disable=SC2086
  generate bytes --prompt "$(printf 'Stra\xc3')" --max-tokens 9 $options >text.txt
  iconv -f UTF-8 -t UTF-8 text.txt >/dev/null || fail "the text is no UTF-8: $(od -c text.txt)"
done
[ "$(wc -l <text.txt)" -eq 20 ] || fail "a generated line end is printed as one"
generate bytes --prompt "$(printf 'Stra\xc3')" --max-tokens 9 --temperature 5 --number 20 --json >json.txt
iconv -f UTF-8 -t UTF-8 json.txt >/dev/null || fail "JSON that is no UTF-8"
printf 'Stra\xc3\n' | generate bytes --input - --max-tokens 9 --temperature 5 --number 20 | cmp -s text.txt - ||
  fail "bytes of a file are not those of a prompt"
refuse_prompt 1 'prompt 1: invalid UTF-8 at byte 5' bytes --prompt "$(printf 'Stra\xc3')" --strict
printf 'Stra\nStra\xc3\n' >bad.txt
refuse_prompt 1 '^tarn generate: bad.txt: prompt 2: invalid UTF-8 at byte 5' bytes --input bad.txt --strict

# Unknown words.
generate words --prompt "Anna qqq zzz" --temperature 3 --number 30 --json >json.txt
grep -q '"unknown":2' json.txt || fail "unknown words: $(head -c 300 json.txt)"
grep -q 'not in the vocabulary: 2$' summary.txt || fail "unknown words are not reported: $(cat summary.txt)"
grep -Eq '\["<(unk|s)>",' json.txt && fail "a token without text is generated"
refuse_prompt 1 'prompt 2: 1 of its 2 tokens are not in the vocabulary' words --strict --prompt Anna --prompt "Anna qqq"

refuse_prompt 2 'argument is missing'
refuse_prompt 1 'nowhere' nowhere
refuse_prompt 1 'no-such-input' recurrent --input no-such-input
refuse_prompt 1 'no/such/folder' recurrent --output no/such/folder
refuse_prompt 1 'cannot write: No such file' recurrent --output ''
echo before >kept.txt
refuse_prompt 1 'no-such-file' recurrent --input no-such-file --output kept.txt
[ ! -e - ] || fail "standard output is a file"
[ "$(cat kept.txt)" = before ] || fail "a failure empties the output"
printf 'Anna\n' >same.txt
"$TARN" generate recurrent --input same.txt --output same.txt 2>/dev/null
[ "$(wc -l <same.txt)" -eq 1 ] && grep -q "^Anna." same.txt || fail "the input cannot be the output: $(cat same.txt)"
refuse_prompt 2 'exclude each other' recurrent --input prompts --prompt A
refuse_prompt 2 'temperature must be above 0, not 0' recurrent --temperature 0
refuse_prompt 2 'temperature must be above 0, not -1' recurrent --temperature -1
refuse_prompt 2 'top-p must be above 0 and at most 1, not 0' recurrent --top-p 0
refuse_prompt 2 'top-p must be above 0 and at most 1, not 1.5' recurrent --top-p 1.5
refuse_prompt 2 '--top-k takes a number from 1' recurrent --top-k 0
refuse_prompt 2 '--beam searches' recurrent --beam 2 --temperature 1
refuse_prompt 2 '--length-penalty needs --beam' recurrent --length-penalty 1
refuse_prompt 2 '--seed needs' recurrent --seed 3
refuse_prompt 2 'greedy search gives one' recurrent --number 2
refuse_prompt 2 'a beam of 2 gives at most as many' recurrent --beam 2 --number 3
refuse_prompt 2 'min-tokens must be from 0 to the max-tokens of 3' recurrent --max-tokens 3 --min-tokens 4
refuse_prompt 2 '--max-tokens takes a number from 1' recurrent --max-tokens 0
generate attention --mbr chrf --number 5 --top-p 0.9 --scores >risk.txt
[ "$(wc -l <risk.txt)" -eq 1 ] || fail "--mbr prints $(cat risk.txt)"
refuse_prompt 2 '--mbr wer: it is bleu or chrf' recurrent --mbr wer
refuse_prompt 2 'minimum Bayes risk chooses among 2 to 1024 samples, not 1$' recurrent --mbr bleu
refuse_prompt 2 'minimum Bayes risk chooses among 2 to 1024 samples, not 2000$' recurrent --mbr bleu --number 2000
refuse_prompt 2 'it excludes .* --mbr' recurrent --beam 4 --mbr bleu
refuse_prompt 2 'repetition penalty must be above 0 and at most 100, not 0' recurrent --repetition-penalty 0
refuse_prompt 2 'frequency penalty must be from -100 to 100, not 1000' recurrent --frequency-penalty 1000
refuse_prompt 2 'presence penalty must be from -100 to 100, not -101' recurrent --presence-penalty -101
refuse_prompt 2 '--no-repeat-ngram takes a number from 0 to 1000' recurrent --no-repeat-ngram 1001
refuse_prompt 2 'min-p must be from 0 to 1, without 1, not 1' recurrent --min-p 1
refuse_prompt 2 'typical-p must be above 0 and at most 1, not 0' recurrent --typical-p 0
refuse_prompt 2 'a stop string must have at least one byte' recurrent --stop ''
refuse_prompt 2 'a banned text has no token' recurrent --banned ''
refuse_prompt 2 'groups must be from 1 to the beam of 4 and divide it, not 3' recurrent --beam 4 --groups 3
refuse_prompt 2 'a diversity penalty needs 2 groups or more' recurrent --beam 4 --diversity-penalty 1
refuse_prompt 2 'stream has one continuation' recurrent --stream --beam 4
refuse_prompt 2 'excludes --input, --json and --scores' recurrent --stream --json
refuse_prompt 2 'did you mean bf16' recurrent --precision bf61
refuse_prompt 2 'did you mean --temperature' recurrent --temperatur 1
if [ -w /dev/full ]; then
  refuse_prompt 1 'No space left' recurrent --output /dev/full
fi
"$TARN" vocab --type bpe --size 200 --output both.model corpus/train.de corpus/train.en 2>vocab.txt || fail "vocab"
"$TARN" prepare --vocab both.model --source corpus/train.de --target corpus/train.en --output both >/dev/null ||
  fail "prepare both"
cat >both.yaml <<'END'
model: { d_model: 16, embeddings: all }
encoder: { layers: L }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 16 }
data: { vocab: both.model, train: both }
train: { max_updates: 1, max_tokens: 200 }
END
"$TARN" train both.yaml --run both-run --threads 2 >train.txt 2>&1 || fail "train both: $(tail -n 3 train.txt)"
refuse_prompt 2 'a translation model does not continue text; only language models' both-run
exit 0
