# tarn import-marian and tarn vocab --import-marian: translation of what was imported, going on with its training, what is
# refused.
set -u
. "$(dirname "$0")/../helpers.sh"
golden="$TARN_SOURCE_DIR/tests/golden/marian_model"

for model in swish relu separate untied; do
  "$TARN" import-marian "$golden/$model" --output $model || fail "import $model"
  jq -r '.translations[].text' "$golden/$model/cases.json" >lines
  jq -r '.translations[].translation' "$golden/$model/cases.json" >wanted
  "$TARN" translate $model <lines >out.txt 2>error.txt || fail "translate by $model: $(cat error.txt)"
  cmp -s out.txt wanted || fail "translations by $model: $(diff out.txt wanted | head -n 4)"
done

# The vocabularies of both sides as files, and a training that goes on from the imported model.
"$TARN" vocab --import-marian "$golden/swish" --output source.vocab || fail "vocabulary of the source"
"$TARN" vocab --import-marian "$golden/swish" --target --output target.vocab || fail "vocabulary of the target"
[ "$(echo '>>deu<< Ein Ball' | "$TARN" encode --vocab source.vocab | cut -d' ' -f1)" = '>>deu<<' ] || fail "a code"
head -n 8 lines >source && head -n 8 wanted >target
"$TARN" prepare --vocab source.vocab --target-vocab target.vocab --source source --target target --output data >/dev/null ||
  fail "prepare"
{
  "$TARN" inspect swish | sed -n '/^model:/,/^name /p' | sed '$d'
  printf 'data: { vocab: source.vocab, target_vocab: target.vocab, train: data, valid: data }\n'
  printf 'train: { init_from: swish, max_updates: 30, lr: 0.002, warmup: 1, threads: 1, tensorboard: no, label_smoothing: 0 }\n'
} >more.yaml
"$TARN" train more.yaml --run more --quiet 2>error.txt || fail "training goes on: $(cat error.txt)"
jq -s -e 'map(select(.valid_nll)) | .[-1].valid_nll < 1' more/log.jsonl >out.txt || fail "it learns: $(tail -n 2 more/log.jsonl)"
"$TARN" inspect more | grep -q 'decoder_start: 154' || fail "what the decoder reads first"

# One clear line, and nothing written.
refuse 2 "import-marian: --output is missing" "$TARN" import-marian "$golden/swish"
refuse 2 "--target goes with --import-marian only" "$TARN" vocab --import-gpt2 x --target --output y
refuse 2 "exclude each other" "$TARN" vocab --import-gpt2 x --import-marian x --output y
refuse 1 "vocab.json: cannot read" "$TARN" vocab --import-marian . --output y
cp -r "$golden/swish" bad && chmod -R u+w bad
jq '.normalize_before = true' "$golden/swish/config.json" >bad/config.json
refuse 1 'bad/config.json: "normalize_before" is true, which tarn does not have' "$TARN" import-marian bad --output y
jq '.wings = 2' "$golden/swish/config.json" >bad/config.json
"$TARN" import-marian bad --output again 2>error.txt || fail "a key that nobody knows: $(cat error.txt)"
grep -q '"wings"' error.txt || fail "a key that nobody knows is not named: $(cat error.txt)"
refuse 1 "the vocabulary of the source has" "$TARN" import-marian "$golden/swish" --vocab "$golden/separate/source.spm" --output y
[ ! -e y ] || fail "a file was written"
