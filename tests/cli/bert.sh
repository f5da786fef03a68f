# tarn import-bert and tarn export --format bert or roberta: round trip, vocabularies, refusals.
set -u
. "$(dirname "$0")/../helpers.sh"
golden="$TARN_SOURCE_DIR/tests/golden"
"$TARN" vocab --type byte --mask-symbols --output bytes || fail "byte vocabulary"
export_of() { "$TARN" export --format "$2" "$1" "$3" || fail "export $1 as $2"; }

# Models saved by transformers. The second export writes the same bytes as the first.
for model in bert roberta untied classes number; do
  format=bert
  case $model in roberta | number) format=roberta ;; esac
  "$TARN" import-bert "$golden/bert_model/$model" --vocab bytes --output $model || fail "import $model"
  export_of $model $format $model-folder
  [ "$(ls $model-folder | tr '\n' ' ')" = "config.json model.safetensors " ] || fail "files: $(ls $model-folder)"
  "$TARN" import-bert $model-folder --vocab bytes --output $model-again || fail "import $model again"
  export_of $model-again $format $model-second
  diff -r $model-folder $model-second || fail "$model is another one after a way there and back"
done
# Pseudo-log-likelihoods, of each token and of each line, equal those of transformers with one token masked at a time.
for model in bert untied roberta; do
  jq -r --arg model $model '.[$model][][0]' "$golden/pll.json" >texts
  jq -c --arg model $model '.[$model][][1]' "$golden/pll.json" >expected.json
  "$TARN" score $model texts --json --tokens >scores.json 2>error.txt || fail "score $model: $(cat error.txt)"
  jq -s '[.[] | [.pieces[][2]] | length] | add' scores.json | grep -qx 25 || fail "$model has not 25 tokens: $(cat scores.json)"
  jq -se --slurpfile expected expected.json 'def near(a; b): a - b | fabs < 1e-5;
    [range(length) as $i | (.[$i].pieces | map(.[2])) as $found | $expected[$i] as $wanted |
      near(.[$i].log_probability; $wanted | add), ($found | length) == ($wanted | length),
      (range($wanted | length) | near($found[.]; $wanted[.]))] | all' scores.json >/dev/null ||
    fail "$model: other pseudo-log-likelihoods: $(cat scores.json)"
done
[ "$(echo abc | "$TARN" classify classes --json | jq -r '.label' | grep -c 'worse\|so\|good')" -eq 1 ] ||
  fail "classes: $(echo abc | "$TARN" classify classes --json)"
# The model's classes are not in byte order, those of a set are: names match them. The set has all classes but one.
for text in a b c dd ee ff ggg hhh 'i i' 'j j' 'k k k' 'l, l' m n; do echo "$text"; done >lines
{ printf 'text\tlabel\n'; awk '{ print $0 "\t" (NR % 3 ? "good" : "so \"so\"") }' lines; } >answers.tsv
"$TARN" prepare --vocab bytes --table answers.tsv --text text --labels label --output answers >/dev/null || fail "prepare answers"
cat >classes.yaml <<'END'
model: { d_model: 16, norm: post, positions: learned, max_length: 16, segments: 2, embedding_norm: yes, embeddings: encoder_output,
         embedding_scale: no, activation: gelu, dropout: 0, task: classification }
encoder: { layers: L*2 }
kinds: { L: { mixer: attention, heads: 2, ffn: 40 } }
head: { pool: cls, hidden: 16, labels: "bad||worse|so \"so\"|good" }
data: { vocab: bytes, train: answers, valid: answers }
train: { init_from: classes, max_updates: 60, lr: 0.01, warmup: 5, threads: 1, tensorboard: no }
END
"$TARN" train classes.yaml --run tuned --quiet 2>error.txt || fail "train classes: $(cat error.txt)"
right=$("$TARN" classify tuned lines 2>/dev/null | cut -f1 | paste - <(tail -n +2 answers.tsv | cut -f2) |
  awk -F'\t' '$1 == $2 { n++ } END { printf "%.4f", n / NR }')
"$TARN" test tuned --labelled answers >out.txt 2>error.txt || fail "test --labelled: $(cat error.txt)"
grep -q "^accuracy $right " out.txt || fail "classify is right in $right, test says $(head -n 1 out.txt)"
grep -qE '^accuracy (0\.[789]|1)' out.txt || fail "it has not learnt the classes of these names: $(head -n 1 out.txt)"
printf 'a\tgood\nb\tgoof\n' >goof.tsv
"$TARN" prepare --vocab bytes --table goof.tsv --text 1 --labels 2 --output goof >/dev/null || fail "prepare goof"
refuse 1 'goof.tarn: its class "goof" is none of the 3 of the model; the nearest is "good"' "$TARN" test tuned --labelled goof
"$TARN" inspect roberta | grep -q 'segments: 1' || fail "the description: $("$TARN" inspect roberta)"
"$TARN" import-bert "$golden/bert_model/body" --vocab bytes --output body 2>error.txt || fail "the encoder alone"
grep -q '"pooler.dense.bias" and others are left out' error.txt || fail "the pooler: $(cat error.txt)"
grep -q 'it has no output of a masked language model' error.txt || fail "no output: $(cat error.txt)"

# A vocabulary without a form in transformers is not exported, with a note.
"$TARN" export --format bert bert bare 2>error.txt || fail "export of a byte vocabulary"
grep -q 'bare: no vocabulary was written' error.txt || fail "a vocabulary is left out without a word: $(cat error.txt)"

# A tarn model with WordPiece exports vocab.txt. A reservoir and a shared layer are written out.
"$TARN" vocab --import-wordpiece "$golden/wordpiece_toy" --cased --output pieces || fail "WordPiece"
printf 'the reservoir layers\nfrozen; shared: (random)\nthe layers\n' >text
"$TARN" prepare --vocab pieces --text text --output data >/dev/null || fail "prepare"
cat >own.yaml <<'END'
model: { d_model: 16, positions: learned, max_length: 40, embedding_norm: yes, embedding_scale: no, activation: gelu, dropout: 0 }
encoder: { layers: R1 L1 L1 }
kinds:
  L: { mixer: attention, heads: 2, ffn: 32 }
  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }
data: { vocab: pieces, train: data }
train: { max_updates: 3, max_tokens: 100, lr: 0.01, warmup: 1, threads: 1 }
END
"$TARN" train own.yaml --run own >train.txt 2>&1 || fail "train: $(cat train.txt)"
export_of own bert own-folder
[ "$(ls own-folder | tr '\n' ' ')" = "config.json model.safetensors tokenizer_config.json vocab.txt " ] || fail "files of our own"
cmp own-folder/vocab.txt "$golden/wordpiece_toy/vocab.txt" || fail "vocab.txt is another one"
"$TARN" import-bert own-folder --output own-again || fail "import with the vocabulary of the folder"
export_of own-again bert own-second
diff -r own-folder own-second | grep -v '^Only\|^diff' | grep . && fail "our own is another one after a way there and back"

# A vocabulary of RoBERTa's kind
"$TARN" export --format gpt2 own x 2>/dev/null && fail "a masked model as GPT-2"
python=${TARN_PYTHON:-python3}
if "$python" -c "import torch, transformers, safetensors" 2>/dev/null; then
  expected() { echo "$1-folder $golden/bert_model/$1/expected.safetensors"; }
  # shellcheck disable=SC2046
  "$python" "$golden/make_bert.py" CHECK $(for model in bert roberta untied classes number; do expected $model; done) >check.txt 2>&1 ||
    fail "transformers makes other logits: $(tail -3 check.txt)"
fi

refuse 2 'an argument is missing' "$TARN" import-bert
refuse 2 '--output is missing' "$TARN" import-bert bert-folder
refuse 2 'gpt2, llama, mistral, qwen2, bert, roberta, marian, ctranslate2 or gguf' "$TARN" export --format xyzzy bert x
refuse 1 'nowhere/config.json: cannot read' "$TARN" import-bert nowhere --output x
refuse 1 'bert-folder: it has no vocabulary (vocab.txt)' "$TARN" import-bert bert-folder --output x
refuse 1 'roberta-folder: it has no vocabulary (vocab.json and merges.txt)' "$TARN" import-bert roberta-folder --output x
refuse 1 'pieces: the vocabulary has [0-9]* tokens, but bert-folder/config.json says 262' \
  "$TARN" import-bert bert-folder --vocab pieces --output x
refuse 1 '"model_type" is gpt2; tarn reads bert and roberta' \
  "$TARN" import-bert "$golden/gpt2_model/tied" --vocab bytes --output x
refuse 2 'masked language model' "$TARN" export --format gpt2 bert x
refuse 2 'the activation of kind L is gelu_tanh' "$TARN" export --format bert roberta x
"$TARN" vocab --type byte --output plain
sed 's/"vocab_size": 262/"vocab_size": 259/' bert-folder/config.json >bert-second/config.json
refuse 1 'no token that begins a row' "$TARN" import-bert bert-second --vocab plain --output x
cp -r bert-folder broken
head -c 3000 bert-folder/model.safetensors >broken/model.safetensors
refuse 1 'broken/model.safetensors' "$TARN" import-bert broken --vocab bytes --output x
[ ! -e x ] || fail "something was written"
exit 0
