# tarn import-marian, tarn vocab --import-marian and tarn export --format marian or ctranslate2: translation with the
# imported model, continued training, round trip, files in bf16, refusals.
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

# The vocabularies of both sides as files, and a training initialised with the imported model.
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

# Half the size: the same bits in bf16, slightly less accurate in fp32; no averaging.
"$TARN" export --precision bf16 swish half || fail "export in bf16"
"$TARN" export --precision bf16 half again || fail "export of that in bf16"
cmp -s half again || fail "an export of an export is another one"
values() { "$TARN" inspect "$1" | awk '/ trained /{ for (i = 1; i <= NF; i++) if ($i == "trained") sum += $(i + 1) } END { print sum }'; }
[ $(($(values half) * 100)) -lt $(($(values swish) * 60)) ] || fail "$(values half) bytes of values, and $(values swish) before"
for file in swish half; do
  "$TARN" translate $file --precision bf16 --scores <lines >$file.bf16 2>/dev/null || fail "translate $file in bf16"
  "$TARN" translate $file --precision int8 <lines >/dev/null 2>&1 || fail "translate $file in int8"
done
cmp -s swish.bf16 half.bf16 || fail "bf16: $(diff swish.bf16 half.bf16 | head -n 4)"
refuse 1 'half cannot be averaged: its tensor' "$TARN" average --output mean half half
refuse 2 'give one of --dense, --format and --precision' "$TARN" export --dense --precision bf16 swish y
refuse 2 '"int5"' "$TARN" export --precision int5 swish y

# A quarter of the size, only for int8, with the same bits.
"$TARN" export --precision int8 swish quarter || fail "export in int8"
[ $(($(values quarter) * 100)) -lt $(($(values swish) * 45)) ] || fail "$(values quarter) bytes of values, and $(values swish) before"
"$TARN" inspect quarter | grep -q '^file .*model in int8' || fail "inspect: $("$TARN" inspect quarter | head -n 1)"
[ "$("$TARN" inspect --json quarter | jq -r .precision)" = int8 ] || fail "inspect --json"
for arguments in "swish --precision int8" quarter "quarter --precision int8"; do
  # shellcheck disable=SC2086
  "$TARN" translate $arguments --n-best 2 <lines >"$arguments.txt" 2>/dev/null || fail "translate $arguments"
  cmp -s "swish --precision int8.txt" "$arguments.txt" || fail "$arguments: $(diff "swish --precision int8.txt" "$arguments.txt" | head -n 4)"
done
for file in swish quarter; do
  "$TARN" states $file encoder.2 --precision int8 --input lines --format npy --output $file-states 2>error.txt || fail "states of $file: $(cat error.txt)"
done
cmp swish-states/encoder.2.npy quarter-states/encoder.2.npy || fail "other states"
refuse 2 'quarter: it holds int8, which is computed with in int8 only; the precision cannot be bf16' "$TARN" translate quarter --precision bf16
for form in --dense "--precision bf16" "--format marian"; do
  # shellcheck disable=SC2086
  refuse 1 'quarter: it holds int8 (tensor .*), which is computed with in int8 only' "$TARN" export $form quarter y
done
refuse 1 'quarter: it holds int8' "$TARN" average --output y quarter quarter
[ ! -e y ] || fail "something was written"
sed 's/init_from: swish/init_from: quarter/' more.yaml >quarter.yaml
refuse 1 'train.init_from: quarter: it holds int8' "$TARN" train quarter.yaml --run quarter-run --quiet

# The same for int4; rows of 16 columns take no less than in int8.
"$TARN" export --precision int4 swish eighth || fail "export in int4"
[ $(($(values eighth) * 100)) -lt $(($(values swish) * 45)) ] || fail "$(values eighth) bytes of values, and $(values swish) before"
"$TARN" inspect eighth | grep -q '^file .*model in int4' || fail "inspect: $("$TARN" inspect eighth | head -n 1)"
for arguments in "swish --precision int4" eighth; do
  # shellcheck disable=SC2086
  "$TARN" translate $arguments --n-best 2 <lines >"$arguments.txt" 2>/dev/null || fail "translate $arguments"
done
cmp "swish --precision int4.txt" eighth.txt || fail "int4: other translations"
refuse 2 'eighth: it holds int4, which is computed with in int4 only; the precision cannot be int8' "$TARN" translate eighth --precision int8

# The export restores what was imported: the same bytes the second time.
for model in relu separate; do
  "$TARN" export --format marian $model $model-folder || fail "export $model"
  "$TARN" import-marian $model-folder --output $model-again || fail "import $model again"
  "$TARN" export --format marian $model-again $model-second || fail "export $model again"
  diff -r $model-folder $model-second || fail "$model is another one after a way there and back"
  "$TARN" export --format ctranslate2 $model $model-ct2 || fail "export $model for CTranslate2"
  jq -e '.decoder_start_token == "<pad>" and .add_source_eos' $model-ct2/config.json >/dev/null || fail "config.json: $(cat $model-ct2/config.json)"
done
[ "$(jq length relu-ct2/shared_vocabulary.json)" -eq 155 ] && [ "$(jq length separate-ct2/target_vocabulary.json)" -gt 50 ] ||
  fail "vocabularies: $(ls relu-ct2 separate-ct2)"

# One clear line, and nothing written.
refuse 2 "import-marian: --output is missing" "$TARN" import-marian "$golden/swish"
refuse 2 "--target goes with --import-marian and --import-checkpoint only" "$TARN" vocab --import-gpt2 x --target --output y
refuse 2 "exclude each other" "$TARN" vocab --import-gpt2 x --import-marian x --output y
refuse 1 "vocab.json: cannot read" "$TARN" vocab --import-marian . --output y
cp -r "$golden/swish" bad && chmod -R u+w bad
jq '.normalize_before = true' "$golden/swish/config.json" >bad/config.json
refuse 1 'bad/config.json: "normalize_before" is true, which tarn does not have' "$TARN" import-marian bad --output y
jq '.wings = 2' "$golden/swish/config.json" >bad/config.json
"$TARN" import-marian bad --output again 2>error.txt || fail "a key that nobody knows: $(cat error.txt)"
grep -q '"wings"' error.txt || fail "a key that nobody knows is not named: $(cat error.txt)"
jq '.eos_token_id = [.eos_token_id]' "$golden/swish/config.json" >bad/config.json
"$TARN" import-marian bad --output again || fail "a list of one token"
cmp -s swish again || fail "a list of one token makes another model"
refuse 1 "the vocabulary of the source has" "$TARN" import-marian "$golden/swish" --vocab "$golden/separate/source.spm" --output y
[ ! -e y ] || fail "a file was written"

# --- Marian's own files

for model in all separate source; do
  cp -r "$TARN_SOURCE_DIR/tests/golden/marian_own/$model" own-$model && chmod -R u+w own-$model
done
cp "$golden/swish/"*.spm own-all && cp "$golden/separate/"*.spm own-separate
if "$TARN" import own-all --output own-all.safetensors 2>error.txt; then
  for model in all separate source; do
    "$TARN" import own-$model --output own-$model.safetensors || fail "import of Marian's own files: $model"
    jq -r '.translations[].text' own-$model/cases.json >lines
    jq -r '.translations[].translation' own-$model/cases.json >wanted
    "$TARN" translate own-$model.safetensors <lines >out.txt 2>error.txt || fail "translate by $model: $(cat error.txt)"
    cmp -s out.txt wanted || fail "translations by $model: $(diff out.txt wanted | head -n 4)"
  done
  # The same model by the other command, and its vocabulary as a file.
  "$TARN" import-marian own-all --output again || fail "import-marian of Marian's own files"
  cmp -s own-all.safetensors again || fail "import-marian makes another model than import"
  "$TARN" vocab --import-marian own-separate --target --output own.vocab || fail "vocabulary of Marian's own files"
  "$TARN" inspect own.vocab | grep -q 'pad' || fail "no padding: $("$TARN" inspect own.vocab)"
  # For CTranslate2, not for transformers, whose sinusoids are others.
  "$TARN" export --format ctranslate2 own-all.safetensors own-ct2 || fail "export for CTranslate2"
  refuse 2 'model.positions is not sinusoidal_paper' "$TARN" export --format marian own-all.safetensors y
  refuse 1 'own-all/all.model1.npz: this is a zip archive; .*a model of Marian is the folder of its .npz' "$TARN" import own-all/all.model1.npz --output y
  printf 'models: [all.model1.npz, all.model1.npz]\n' >own-all/decoder.yml
  refuse 1 'own-all/decoder.yml: "models" lists 2 files, not 1' "$TARN" import own-all --output y
  [ ! -e y ] || fail "a file was written"
else
  grep -q 'this build reads no archives of NumPy' error.txt || fail "import of Marian's own files: $(cat error.txt)"
fi
