# Exports for Marian and CTranslate2, in the packages themselves if they are installed (TARN_PYTHON: the Python to use):
# logits of the former, translations of the latter.
set -u
. "$(dirname "$0")/../helpers.sh"
python=${TARN_PYTHON:-python3}
golden="$TARN_SOURCE_DIR/tests/golden"
"$python" -c "import transformers, torch, ctranslate2" 2>/dev/null ||
  { echo "the packages transformers and ctranslate2 are not installed"; exit 77; }

pairs=()
for model in swish relu separate untied; do
  mkdir $model && cp "$golden/marian_model/$model"/* $model/
  # Without the change to the logit of padding.
  [ ! -e $model/generation_config.json ] || { jq 'del(.renormalize_logits)' $model/generation_config.json >g && mv g $model/generation_config.json; }
  "$TARN" import-marian $model --output $model.safetensors || fail "import $model"
  "$TARN" export --format marian $model.safetensors $model-marian || fail "export $model as marian"
  "$TARN" export --format ctranslate2 $model.safetensors $model-ct2 || fail "export $model for CTranslate2"
  "$TARN" vocab --import-marian $model --output $model.vocab || fail "vocabulary of $model"
  pairs+=($model-marian "$golden/marian_model/$model/expected.safetensors")
done
"$python" "$golden/make_marian.py" CHECK "${pairs[@]}" 2>error.txt || fail "logits of the package: $(tail -n 3 error.txt)"

# Greedy and beam search; both forbid an empty translation.
cat >translate.py <<'END'
import sys
import ctranslate2
folder, beam, penalty = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
options = {name: float(value) if "penalty" in name else int(value) for name, value in (item.split("=") for item in sys.argv[4:])}
translator = ctranslate2.Translator(folder, device="cpu", compute_type="float32", inter_threads=1, intra_threads=1)
lines = [line.split() for line in sys.stdin.read().split("\n")[:-1]]
for result in translator.translate_batch(lines, beam_size=beam, length_penalty=penalty, max_decoding_length=40, **options):
    print("".join(result.hypotheses[0]).replace("\u2581", " ").replace("<unk>", "").strip())
END
for model in swish relu separate untied; do
  jq -r '.translations[].text' "$golden/marian_model/$model/cases.json" >lines
  "$TARN" encode --vocab $model.vocab <lines >pieces
  for beam in 1 4; do
    "$TARN" translate $model.safetensors --beam $beam --length-penalty 1 --max-len-b 40 <lines >ours 2>/dev/null || fail "translate"
    "$python" translate.py $model-ct2 $beam 1 <pieces >theirs 2>error.txt || fail "CTranslate2: $(tail -n 3 error.txt)"
    same=$(paste -d'\t' ours theirs | awk -F'\t' '$1 == $2 { n++ } END { print n + 0 }')
    echo "$model, beam $beam: $same of $(wc -l <lines) translations are equal"
    # The searches end differently; greedy ones are equal.
    [ $beam -gt 1 ] || cmp -s ours theirs || fail "$model: $(diff ours theirs | head -n 4)"
    [ $((2 * same)) -gt "$(wc -l <lines)" ] || fail "$model, beam $beam: only $same translations are equal"
  done
  # Processors of logits.
  while read -r ours theirs; do
    # shellcheck disable=SC2086
    "$TARN" translate $model.safetensors --beam 1 --max-len-b 40 ${ours//,/ } <lines >ours 2>/dev/null || fail "translate $ours"
    # shellcheck disable=SC2086
    "$python" translate.py $model-ct2 1 1 ${theirs//,/ } <pieces >theirs 2>error.txt || fail "CTranslate2: $(tail -n 3 error.txt)"
    cmp -s ours theirs || fail "$model, $theirs: $(diff ours theirs | head -n 4)"
  done <<'END'
--repetition-penalty,1.3 repetition_penalty=1.3
--no-repeat-ngram,2 no_repeat_ngram_size=2
--no-repeat-ngram,1 no_repeat_ngram_size=1
--no-repeat-ngram,3,--repetition-penalty,2 no_repeat_ngram_size=3,repetition_penalty=2
END
done
