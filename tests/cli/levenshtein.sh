# A Levenshtein Transformer from text: training with BLEU, translation with its own options, test, int8, server, and one
# clear line for what does not fit.
set -u
. "$(dirname "$0")/../helpers.sh"
server=""
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null' EXIT

"$TARN" corpus --output corpus --sentences 300 --held-out 40 >out.txt 2>error.txt || fail "corpus: $(cat error.txt)"
"$TARN" vocab --type bpe --size 220 --mask-symbols --output v.model corpus/train.de corpus/train.en >out.txt 2>error.txt
for part in train valid; do
  "$TARN" prepare --vocab v.model --source corpus/$part.de --target corpus/$part.en --output v.$part >out.txt 2>error.txt ||
    fail "prepare: $(cat error.txt)"
done
cat >l.yaml <<'END'
model: { task: levenshtein, d_model: 16, max_length: 40, embeddings: all, dropout: 0 }
encoder: { layers: L R }
decoder: { layers: L }
levenshtein: { max_placeholders: 30, beta: 0.5 }
kinds:
  L: { mixer: attention, heads: 2, ffn: 32 }
  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }
data: { vocab: v.model, train: v.train, valid: v.valid }
train: { max_updates: 40, lr: 0.02, warmup: 10, max_tokens: 1000, log_every: 20, threads: 1 }
valid: { every: 40, max_sentences: 10 }
translate: { iterations: 4, placeholder_penalty: 5 }
END
"$TARN" plan l.yaml >out.txt 2>error.txt || fail "plan: $(cat error.txt)"
"$TARN" train l.yaml --run run >out.txt 2>error.txt || fail "train: $(cat error.txt)"
grep -q 'best  *BLEU' out.txt || fail "no best BLEU: $(cat out.txt)"
grep -q '^  max_placeholders: 30$' run/config.yaml && ! grep -q '^  beam:\|length_beam' run/config.yaml ||
  fail "keys: $(cat run/config.yaml)"
"$TARN" inspect run >out.txt 2>error.txt && grep -q '^output.deletion.weight .* output' out.txt &&
  grep -q '^output.placeholders.weight .*31.*32' out.txt || fail "inspect: $(cat out.txt)"

# Translation: one line for each, whatever is translated together; the summary has the iterations.
{ head -n 9 corpus/test.de; echo; tail -n 5 corpus/test.de; } >lines.de
translate() { "$TARN" translate run --threads 1 "$@" <lines.de 2>error.txt || fail "translate $*: $(cat error.txt)"; }
translate >a.en
[ "$(wc -l <a.en)" -eq 15 ] || fail "lines: $(cat a.en)"
[ "$(grep -c . a.en)" -ge 10 ] && [ -z "$(sed -n 10p a.en)" ] || fail "the empty line: $(cat a.en)"
for same in "--window 4" "--max-tokens 9" "--iterations 4 --placeholder-penalty 5" "--threads 2"; do
  translate $same | cmp -s a.en - || fail "$same changes the translations"
done
translate --iterations 1 >/dev/null
grep -q '^iterations over a sentence: 1.00 on average$' error.txt || fail "summary: $(cat error.txt)"
translate --scores --placeholder-penalty 3 | cut -f 1 | grep -qvE '^-?[0-9.]+$' && fail "scores"
needs='a Levenshtein Transformer has no'
refuse 2 "safetensors: $needs beam; its options are iterations and placeholder_penalty\$" "$TARN" translate run --beam 2
refuse 2 "$needs length_beam" "$TARN" translate run --length-beam 2
refuse 2 'n-best must be 1, not 2' "$TARN" translate run --n-best 2
# What steers a search by tokens has no effect here, so it is refused.
for options in "--repetition-penalty 2" "--banned e" "--no-repeat-ngram 2" "--samples 2" "--temperature 2" "--samples 4 --mbr chrf"; do
  # shellcheck disable=SC2086
  refuse 2 'for models that translate token by token' "$TARN" translate run $options
done
refuse 2 'groups must be' "$TARN" translate run --groups 2
# The penalty lets nothing be inserted less often: translations grow.
words() { translate --placeholder-penalty "$1" | wc -w; }
[ "$(words 100)" -gt "$(words 0)" ] || fail "penalties 0 and 100: $(words 0) and $(words 100) words"
refuse 2 'a masked translation model has no levenshtein' "$TARN" train l.yaml --run no --set model.task=masked-translation
refuse 2 'token by token' "$TARN" export --format ctranslate2 run folder
"$TARN" test run --source corpus/test.de --reference corpus/test.en >out.txt 2>error.txt || fail "test: $(cat error.txt)"
grep -q 'at most 4 iterations$' out.txt && jq -e '.iterations == 4 and (has("length_beam") | not)' run/test.json >/dev/null ||
  fail "test: $(cat out.txt run/test.json)"
"$TARN" export --precision int8 run small.safetensors >out.txt 2>error.txt || fail "int8: $(cat error.txt)"
"$TARN" translate small.safetensors <lines.de >int8.en 2>error.txt || fail "int8: $(cat error.txt)"
translate --precision int8 | cmp -s int8.en - || fail "an int8 file translates otherwise than in int8"

# A server.
if command -v curl >/dev/null && ! "$TARN" serve nowhere 2>&1 | grep -q "no libmicrohttpd"; then
  "$TARN" serve run --port 0 --threads 1 --wait 0 >address.txt 2>server.txt &
  server=$!
  within_two_minutes eval '[ -s address.txt ] || gone $server'
  [ -s address.txt ] || fail "serve: $(cat server.txt)"
  url=$(sed 's|/$||' address.txt)
  post() { curl -s -H 'Content-Type: application/json' --data-binary "$1" "$url/translate"; }
  [ "$(post "$(jq -Rn '{text: [inputs]}' lines.de)" | jq -r '.translations[].hypotheses[0].text')" = "$(cat a.en)" ] ||
    fail "the server translates otherwise"
  curl -s "$url/health" | jq -e '.iterations == 4 and (has("beam") or has("length_beam") | not)' >/dev/null || fail "health"
  post '{"text": "a", "iterations": 1}' | jq -e '.translations[0].hypotheses | length == 1' >/dev/null || fail "iterations"
  post '{"text": "a", "length_beam": 2}' | grep -q 'error.*length_beam' || fail "length_beam"
  post '{"text": "a", "n_best": 2}' | grep -q 'error.*n_best' || fail "n_best"
  kill -TERM $server
  wait $server
  server=""
fi
