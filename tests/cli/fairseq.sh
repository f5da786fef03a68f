# tarn import of fairseq's models, their dictionaries as vocabularies, continued training, refusals.
set -u
. "$(dirname "$0")/../helpers.sh"
golden="$TARN_SOURCE_DIR/tests/golden"

cp -r "$golden/fairseq/iwslt" in && chmod -R u+w in
: >in/pytorch_model.bin  # folders often hold the same weights as a pickle
"$TARN" import in --output model.safetensors || fail "import"
jq -r '.translations[].text' in/cases.json >lines
jq -r '.translations[].translation' in/cases.json >wanted
"$TARN" translate model.safetensors --max-len-b 12 <lines >out.txt 2>error.txt || fail "translate: $(cat error.txt)"
cmp -s out.txt wanted || fail "translations: $(diff out.txt wanted | head -n 4)"

# A training that begins with it, with its dictionaries as vocabularies.
head -n 4 lines >source && printf 'the old man\nthe water\nthe woman reads\na man plays\n' >target
"$TARN" prepare --vocab in/dict.de.txt --target-vocab in/dict.en.txt --source source --target target --output data >/dev/null || fail "prepare"
{
  "$TARN" inspect model.safetensors | sed -n '/^model:/,/^name /p' | sed '$d'
  printf 'data: { vocab: in/dict.de.txt, target_vocab: in/dict.en.txt, train: data, valid: data }\n'
  printf 'train: { init_from: model.safetensors, max_updates: 200, lr: 0.03, warmup: 1, threads: 1, tensorboard: no, label_smoothing: 0 }\n'
} >more.yaml
"$TARN" train more.yaml --run more --quiet 2>error.txt || fail "training goes on: $(cat error.txt)"
jq -s -e 'map(select(.valid_nll)) | .[-1].valid_nll < 2' more/log.jsonl >out.txt || fail "it learns: $(tail -n 2 more/log.jsonl)"

# A dictionary whose texts SentencePiece cuts has the pieces of that model.
mkdir pieces && cp "$golden/marian_model/relu/source.spm" pieces/spm.model
jq -r 'keys[] | select(. != "<pad>" and . != "</s>" and . != "<unk>") | . + " 1"' "$golden/marian_model/relu/vocab.json" >pieces/dict.de.txt
"$TARN" vocab --import-marian "$golden/marian_model/relu" --output marian.vocab || fail "Marian's vocabulary"
echo 'Ein alter Mann' >text
for vocab in pieces/dict.de.txt marian.vocab; do "$TARN" encode --vocab $vocab <text >"$(basename $vocab).out" || fail "encode by $vocab"; done
cmp dict.de.txt.out marian.vocab.out || fail "other pieces: $(cat dict.de.txt.out)"

# One clear line, and nothing written.
head -c 400 /dev/zero >zeros && { printf 'PK\003\004'; printf 'archive/data.pkl'; cat zeros; } >in/checkpoint_best.pt
refuse 1 'this is a pickle, .*docs/translation.md' "$TARN" import in/checkpoint_best.pt --output y
mkdir only && cp in/checkpoint_best.pt only
refuse 1 'only: there is no model.safetensors, and checkpoint_best.pt is a pickle' "$TARN" import only --output y
jq '.encoder_layers = 5' in/config.json >config && cp -r in other && mv config other/config.json
refuse 1 'other/config.json: "encoder_layers" is 5, but by the tensors of other/model.safetensors it is [1-9]' "$TARN" import other --output y
printf 'tarn-vocab fairseq 1\nsize 4\n<s>\n<s>\n<s>\n<s>\ncodes 0\n' >same.vocab
refuse 1 'same.vocab: .*token 1 must be <pad>' "$TARN" encode --vocab same.vocab
cp -r "$golden/marian_model/relu" both && chmod -R u+w both && : >both/pytorch_model.bin
"$TARN" import both --output both.safetensors || fail "import of a folder that also has a pickle"
head -c 3000 in/model.safetensors >short && mv short in/model.safetensors
refuse 1 'in/model.safetensors' "$TARN" import in --output y
[ ! -e y ] || fail "a file was written"
