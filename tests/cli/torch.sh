# tarn import of models of PyTorch's nn.Transformer, the vocabularies of a checkpoint, continued training, refusals.
set -u
. "$(dirname "$0")/../helpers.sh"
golden="$TARN_SOURCE_DIR/tests/golden"

cp -r "$golden/torch/tutorial" in && chmod -R u+w in
"$TARN" import in --output model.safetensors || fail "import"
jq -r '.translations[].text' in/cases.json >lines
jq -r '.translations[].greedy' in/cases.json >wanted
"$TARN" translate model.safetensors <lines >out.txt 2>error.txt || fail "translate: $(cat error.txt)"
cmp -s out.txt wanted || fail "translations: $(diff out.txt wanted | head -n 4)"
"$TARN" translate model.safetensors --alignment </dev/null >out.txt 2>error.txt || fail "nothing: $(cat error.txt)"

# The vocabulary of the source puts <bos> in front of each text, a list of tokens does not.
"$TARN" vocab --import-checkpoint model.safetensors --output source.vocab || fail "the source's vocabulary"
"$TARN" vocab --import-checkpoint model.safetensors --target --output target.vocab || fail "the target's vocabulary"
printf 'die frau\n\n' >text
"$TARN" encode --vocab source.vocab <text >out.txt || fail "encode"
[ "$(cat out.txt)" = "<bos> die frau" ] || fail "source: $(cat out.txt)"
"$TARN" encode --vocab in/tokens.source.txt <text >out.txt || fail "encode by the list"
[ "$(cat out.txt)" = "die frau" ] || fail "list: $(cat out.txt)"

# A model without a target has no vocabulary of one.
printf 'tarn-vocab byte 1\n' >bytes
printf 'model: { d_model: 4 }\ndecoder: { layers: L }\nkinds: { L: { heads: 2, ffn: 4 } }\ndata: { vocab: bytes, train: texts }\ntrain: { max_updates: 1, threads: 1, tensorboard: no }\n' >language.yaml
"$TARN" prepare --vocab bytes --text text --output texts >/dev/null || fail "prepare texts"
"$TARN" train language.yaml --run language --quiet 2>error.txt || fail "language model: $(cat error.txt)"
refuse 2 'language: this model has one vocabulary, not another one for a target' \
  "$TARN" vocab --import-checkpoint language --target --output y
"$TARN" vocab --import-checkpoint language --output same && cmp -s bytes same || fail "the vocabulary of a run"

# The numbers of --alignment count <bos>, and source_pieces has it.
printf 'die frau\n' | "$TARN" translate model.safetensors --alignment --json >out.txt 2>error.txt || fail "alignment: $(cat error.txt)"
jq -e '.source_pieces == ["<bos>", "die", "frau", "<eos>"] and
  ([.. | .attention? | select(.) | .[] | length] | all(. == 4) and length > 0)' out.txt >jq.txt || fail "alignment: $(cat out.txt)"

# A training that begins with it.
head -n 4 lines >source && printf 'the old man\nthe water\nthe woman reads\na man plays\n' >target
"$TARN" prepare --vocab source.vocab --target-vocab target.vocab --source source --target target --output data >/dev/null || fail "prepare"
{
  "$TARN" inspect model.safetensors | sed -n '/^model:/,/^name /p' | sed '$d'
  printf 'data: { vocab: source.vocab, target_vocab: target.vocab, train: data, valid: data }\n'
  printf 'train: { init_from: model.safetensors, max_updates: 60, lr: 0.05, warmup: 1, threads: 1, tensorboard: no, label_smoothing: 0 }\n'
} >more.yaml
"$TARN" train more.yaml --run more --quiet 2>error.txt || fail "training goes on: $(cat error.txt)"
jq -s -e 'map(select(.valid_nll)) | .[-1].valid_nll < 2.2' more/log.jsonl >out.txt || fail "it learns: $(tail -n 2 more/log.jsonl)"
"$TARN" plan more.yaml >out.txt || fail "plan"

# Formats without a norm behind post-norm layers.
for format in marian ctranslate2; do
  refuse 2 'encoder.final_norm is yes, and in .* a norm stands behind pre-norm layers alone' \
    "$TARN" export --format $format model.safetensors y
done

# CTranslate2 puts the token in front of each source itself, which is called as that of the target.
cp -r in pre && jq '.norm_first = true' in/config.json >pre/config.json
"$TARN" import pre --output pre.safetensors || fail "import of pre-norm layers"
"$TARN" export --format ctranslate2 pre.safetensors pre-ct2 || fail "export for CTranslate2"
jq -e '.add_source_bos and .bos_token == "<bos>" and .eos_token == "<eos>"' pre-ct2/config.json >out.txt || fail "$(cat pre-ct2/config.json)"
sed 's/<bos>/<s>/' in/tokens.source.txt >pre/tokens.source.txt
"$TARN" import pre --output pre.safetensors || fail "import with another beginning"
refuse 2 'the beginning of a sentence is "<s>" in the source and "<bos>" in the target' \
  "$TARN" export --format ctranslate2 pre.safetensors y

# One clear line, and nothing written.
refuse 2 'exclude each other' "$TARN" vocab --import-checkpoint model.safetensors --import-marian x --output y
refuse 1 'in: ' "$TARN" vocab --import-checkpoint in --output y
jq '.nhead = 5' in/config.json >config && cp -r in other && mv config other/config.json
refuse 1 'other/config.json: "nhead" is 5, which does not divide' "$TARN" import other --output y
jq '.model_type = "nn.Transfomer"' in/config.json >other/config.json
refuse 1 'other/config.json: "model_type" is "nn.Transfomer"; .*did you mean nn.Transformer' "$TARN" import other --output y
printf 'a b\n' >>other/tokens.source.txt && cp in/config.json other
refuse 1 'other/tokens.source.txt:[0-9]*: the token holds white space' "$TARN" import other --output y
head -c 3000 in/model.safetensors >short && mv short in/model.safetensors
refuse 1 'in/model.safetensors' "$TARN" import in --output y
[ ! -e y ] || fail "a file was written"
