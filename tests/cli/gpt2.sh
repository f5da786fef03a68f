# tarn import-gpt2 and tarn export --format gpt2: round trip with the same scores, vocabularies, refusals.
set -u
. "$(dirname "$0")/../helpers.sh"
golden="$TARN_SOURCE_DIR/tests/golden"
scores() { "$TARN" score "$1" text --threads 1 2>score.txt || fail "score $1: $(cat score.txt)"; }
printf 'ab c\n\n\xc3\xa4hm\n' >text
"$TARN" vocab --type byte --output bytes || fail "byte vocabulary"

# Models saved by transformers, with and without tied embeddings.
for model in tied untied; do
  "$TARN" import-gpt2 "$golden/gpt2_model/$model" --vocab bytes --output $model || fail "import $model"
  scores $model >$model.txt
  "$TARN" export --format gpt2 $model $model-folder || fail "export $model"
  [ "$(ls $model-folder | tr '\n' ' ')" = "config.json model.safetensors " ] || fail "files: $(ls $model-folder)"
  "$TARN" import-gpt2 $model-folder --vocab bytes --output $model-again || fail "import $model again"
  scores $model-again | cmp - $model.txt || fail "$model scores otherwise after a way there and back"
done
cmp -s tied.txt untied.txt && fail "both models are the same"
"$TARN" inspect tied | grep -q 'L: *{.*heads: 2\|heads: 2' || fail "the description: $("$TARN" inspect tied)"

# A tarn model with a vocabulary of GPT-2's kind exports it. A reservoir and a shared layer are written out.
"$TARN" vocab --import-gpt2 "$golden/gpt2_toy" --output toy || fail "toy vocabulary"
"$TARN" prepare --vocab toy --text text --output data >/dev/null || fail "prepare"
cat >own.yaml <<'END'
model: { d_model: 16, norm: pre, positions: learned, max_length: 20, embedding_scale: no, activation: gelu_tanh, dropout: 0 }
decoder: { layers: R1 L1 L1 }
kinds:
  L: { mixer: attention, heads: 2, ffn: 32 }
  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes, attention_dropout: 0.15 }
data: { vocab: toy, train: data }
train: { max_updates: 3, max_tokens: 100, lr: 0.01, warmup: 1, threads: 1 }
END
"$TARN" train own.yaml --run own >train.txt 2>&1 || fail "train: $(cat train.txt)"
"$TARN" export --format gpt2 own own-folder 2>err.txt || fail "export of a run"
grep -q "no place for dropouts that differ among layers" err.txt && ! grep -q layerdrop err.txt || fail "what is lost: $(cat err.txt)"
"$TARN" train own.yaml --run dropped --set decoder.layerdrop=0.1 --set train.max_updates=1 --quiet
"$TARN" export --format gpt2 dropped dropped-folder 2>err.txt || fail "export of a run with layerdrop"
grep -q "GPT-2's format has no place for .* and layerdrop" err.txt || fail "layerdrop is lost without a word: $(cat err.txt)"
"$TARN" vocab --import-gpt2 own-folder --output toy-again || fail "the vocabulary of the folder"
cmp toy toy-again || fail "the vocabulary is another one"
"$TARN" import-gpt2 own-folder --output own-again || fail "import with the vocabulary of the folder"
grep -q '"attn_pdrop": 0.15' own-folder/config.json || fail "attention's dropout there: $(cat own-folder/config.json)"
"$TARN" inspect own-again | grep -q 'attention_dropout: 0.15' || fail "and back: $("$TARN" inspect own-again)"
scores own >own.txt
scores own-again | cut -f 2,3 | diff - <(cut -f 2,3 own.txt) || fail "tokens of the model of our own"
paste <(scores own-again) own.txt | awk '{ d = $1 - $4; if (d > 1e-4 || d < -1e-4) exit 1 }' || fail "our own scores otherwise"

# tarn import knows a folder by its config.json.
"$TARN" import tied-folder --vocab bytes --output any --json | grep -qF '{"output":"any","folder":"tied-folder"}' || fail "--json of an import"
scores any | cmp - tied.txt || fail "tied scores otherwise by tarn import"
"$TARN" import "$golden/llama_model/grouped" --vocab bytes --output llama || fail "import of LLaMA"
scores llama >llama.txt
"$TARN" export --format llama llama llama-folder 2>err.txt || fail "export of LLaMA: $(cat err.txt)"
"$TARN" import llama-folder --vocab bytes --output llama-again && scores llama-again | cmp - llama.txt || fail "LLaMA there and back"
"$TARN" export --format gguf llama llama.gguf 2>err.txt && fail "GELU as gguf"
grep -q "its FFN is geglu, and GGUF's llama has swiglu" err.txt || fail "why: $(cat err.txt)"
"$TARN" import "$golden/gguf/model.gguf" --output gguf || fail "import of GGUF"
"$TARN" export --format gguf --type q8_0 gguf q8.gguf && "$TARN" import q8.gguf --output gguf-again || fail "GGUF there and back"
paste <("$TARN" score gguf text 2>/dev/null) <("$TARN" score gguf-again text 2>/dev/null) | awk '{ d = $1 - $4; if (d > 0.5 || d < -0.5) exit 1 }' || fail "Q8_0 scores otherwise"
refuse 2 "type goes with --format gguf" "$TARN" export --format llama --type f16 llama x
"$TARN" import "$golden/gguf/gpt2.gguf" --output gguf && "$TARN" export --format gguf gguf gpt2.gguf && "$TARN" import gpt2.gguf --output gguf-again || fail "GPT-2 as GGUF"
cmp <("$TARN" score gguf text 2>/dev/null) <("$TARN" score gguf-again text 2>/dev/null) || fail "GPT-2 scores otherwise after a way there and back"
refuse 2 "model.positions is not rotary" "$TARN" export --format llama tied x
refuse 2 "has one vocabulary, not another one for a target" "$TARN" import tied-folder --vocab bytes --target-vocab bytes --output x
refuse 1 "own.yaml: this is a configuration" "$TARN" import own.yaml --output x

# Matrices with one row stay matrices, in every precision and in the format.
sed 's/ffn: 32/ffn: 1/' own.yaml >narrow.yaml
"$TARN" train narrow.yaml --run narrow --set train.precision=bf16 >train.txt 2>&1 || fail "one unit: $(cat train.txt)"
"$TARN" export --format gpt2 narrow narrow-folder || fail "export of one unit"
"$TARN" import-gpt2 narrow-folder --output narrow-again || fail "import of one unit"
paste <(scores narrow-again) <(scores narrow) | awk '{ d = $1 - $4; if (d > 1e-4 || d < -1e-4) exit 1 }' || fail "one unit"

refuse 2 'an argument is missing' "$TARN" import-gpt2
refuse 2 '--output is missing' "$TARN" import-gpt2 tied-folder
refuse 1 'nowhere/config.json: cannot read' "$TARN" import-gpt2 nowhere --output x
refuse 1 'tied-folder: it has no vocabulary' "$TARN" import-gpt2 tied-folder --output x
refuse 1 'toy: the vocabulary has 640 tokens, but tied-folder/config.json says 259' \
  "$TARN" import-gpt2 tied-folder --vocab toy --output x
cp -r tied-folder broken
head -c 3000 tied-folder/model.safetensors >broken/model.safetensors
refuse 1 'broken/model.safetensors' "$TARN" import-gpt2 broken --vocab bytes --output x
sed 's/"n_layer": 2/"n_layer": 3/' tied-folder/config.json >broken/config.json
cp tied-folder/model.safetensors broken
refuse 1 'tensor "h.2.ln_1.weight" is missing' "$TARN" import-gpt2 broken --vocab bytes --output x
[ ! -e x ] || fail "a refused import is written"
refuse 2 'give one of --dense, --format and --precision' "$TARN" export own x
refuse 2 'cannot be "gpt3"; did you mean gpt2?' "$TARN" export --format gpt3 own x
sed 's/norm: pre/norm: post/' own.yaml >post.yaml
"$TARN" train post.yaml --run post >train.txt 2>&1 || fail "train: $(cat train.txt)"
refuse 2 "layer 1 (kind R) is not pre-norm, as GPT-2" "$TARN" export --format gpt2 post x
"$TARN" train own.yaml --run grouped --set kinds.L.kv_heads=1 --quiet
refuse 2 "kind L has kv_heads 1 and heads 2, and in GPT-2's format each" "$TARN" export --format gpt2 grouped x
[ ! -e x ] || fail "a refused export is written"
exit 0
