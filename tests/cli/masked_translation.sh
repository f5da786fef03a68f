# Masked translation (CMLM, mask-predict) from text: vocabulary, training with BLEU, translation with its own options,
# test, server, states; distillation by one command that goes on where it was; and one clear line for what does not fit.
set -u
. "$(dirname "$0")/../helpers.sh"
server=""
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null' EXIT

"$TARN" corpus --output corpus --sentences 300 --held-out 40 >out.txt 2>error.txt || fail "corpus: $(cat error.txt)"
"$TARN" vocab --type bpe --size 220 --mask-symbols --output v.model corpus/train.de corpus/train.en >out.txt 2>error.txt
"$TARN" vocab --type bpe --size 200 --output plain.model corpus/train.de corpus/train.en >out.txt 2>error.txt
for part in train valid; do
  for vocab in v plain; do
    "$TARN" prepare --vocab $vocab.model --source corpus/$part.de --target corpus/$part.en --output $vocab.$part \
      >out.txt 2>error.txt || fail "prepare: $(cat error.txt)"
  done
done
cat >m.yaml <<'END'
model: { task: masked-translation, d_model: 16, max_length: 60, embeddings: all, dropout: 0 }
encoder: { layers: L R }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 32 }
  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }
data: { vocab: v.model, train: v.train, valid: v.valid }
train: { max_updates: 20, lr: 0.01, warmup: 5, max_tokens: 1000, log_every: 10, threads: 1 }
valid: { every: 20, max_sentences: 10 }
translate: { iterations: 4, length_beam: 3 }
END
"$TARN" plan m.yaml >out.txt 2>error.txt || fail "plan: $(cat error.txt)"
"$TARN" train m.yaml --run run >out.txt 2>error.txt || fail "train: $(cat error.txt)"
grep -q 'best  *BLEU' out.txt || fail "no best BLEU: $(cat out.txt)"
! grep -q '^  beam:\|max_len_\|length_penalty' run/config.yaml || fail "keys of a beam: $(cat run/config.yaml)"
"$TARN" inspect run >out.txt 2>error.txt && grep -q '^output.length.weight .* output' out.txt || fail "inspect: $(cat out.txt)"

# Translation: one line for each, whatever is translated together; the options of the model, and no others.
{ head -n 9 corpus/test.de; echo; tail -n 5 corpus/test.de; } >lines.de
translate() { "$TARN" translate run --threads 1 "$@" <lines.de 2>error.txt || fail "translate $*: $(cat error.txt)"; }
translate >a.en
[ "$(wc -l <a.en)" -eq 15 ] && [ "$(grep -n '^$' a.en)" = "10:" ] || fail "lines: $(cat a.en)"
for same in "--window 4" "--max-tokens 9" "--iterations 4 --length-beam 3" "--threads 2"; do
  translate $same | cmp -s a.en - || fail "$same changes the translations"
done
translate --n-best 3 | grep -c '^0 ||| ' | grep -qx 3 || fail "n-best"
translate --length-beam 1 --iterations 1 --json | jq -se 'length == 15 and (map(.hypotheses[0].score <= 0) | all)' >/dev/null ||
  fail "JSON"
needs='a masked translation model has no'
refuse 2 "safetensors: $needs beam; its options are iterations and length_beam\$" "$TARN" translate run --beam 2
refuse 2 "$needs length_penalty" "$TARN" translate run --length-penalty 1
refuse 2 "$needs max_len_b" "$TARN" translate run --max-len-b 10
refuse 2 'n-best must be from 1 to the length-beam of 3, not 4' "$TARN" translate run --n-best 4
# What steers a search by tokens has no effect here, so it is refused.
for options in "--repetition-penalty 2" "--banned e" "--no-repeat-ngram 2" "--samples 2" "--temperature 2" "--samples 4 --mbr chrf"; do
  # shellcheck disable=SC2086
  refuse 2 'for models that translate token by token' "$TARN" translate run $options
done
refuse 2 'groups must be' "$TARN" translate run --groups 2
refuse 2 "translate.beam: $needs beam" "$TARN" train m.yaml --run no --set translate.beam=2
refuse 2 "translate.beam: $needs beam" "$TARN" train m.yaml --run no --set translate.beam=5  # also at its default
refuse 2 "valid.beam: $needs beam" "$TARN" train m.yaml --run no --set valid.beam=2
refuse 2 'plain.model: the vocabulary has no <mask>.*--mask-symbols' "$TARN" train m.yaml --run no \
  --set data.vocab=plain.model --set data.train=plain.train --set data.valid=plain.valid
refuse 2 'Marian translates token by token' "$TARN" export --format marian run folder
refuse 2 'CTranslate2 translates token by token' "$TARN" export --format ctranslate2 run folder
"$TARN" test run --source corpus/test.de --reference corpus/test.en >out.txt 2>error.txt || fail "test: $(cat error.txt)"
grep -q '4 iterations, length beam 3$' out.txt && jq -e '.beam == 0 and .iterations == 4 and .length_penalty == null' run/test.json >/dev/null ||
  fail "test: $(cat out.txt run/test.json)"
refuse 2 "$needs beam" "$TARN" test run --source corpus/test.de --reference corpus/test.en --beam 4
"$TARN" export --precision int8 run small.safetensors >out.txt 2>error.txt || fail "int8: $(cat error.txt)"
"$TARN" translate small.safetensors <lines.de >int8.en 2>error.txt || fail "int8: $(cat error.txt)"
translate --precision int8 | cmp -s int8.en - || fail "an int8 file translates otherwise than in int8"

# A server.
if command -v curl >/dev/null && ! "$TARN" serve nowhere 2>&1 | grep -q "no libmicrohttpd"; then
  "$TARN" serve run --port 0 --threads 1 --wait 0 >address.txt 2>server.txt &
  server=$!
  within_two_minutes eval '[ -s address.txt ] || gone $server'
  url=$(sed 's|/$||' address.txt)
  post() { curl -s -H 'Content-Type: application/json' --data-binary "$1" "$url/translate"; }
  [ "$(post "$(jq -Rn '{text: [inputs]}' lines.de)" | jq -r '.translations[].hypotheses[0].text')" = "$(cat a.en)" ] ||
    fail "the server translates otherwise"
  curl -s "$url/health" | jq -e '.length_beam == 3 and .iterations == 4 and (has("beam") | not)' >/dev/null || fail "health"
  post '{"text": "a", "n_best": 2, "length_beam": 2, "iterations": 1}' | jq -e '.translations[0].hypotheses | length == 2' \
    >/dev/null || fail "length_beam"
  post '{"text": "a", "beam": 2}' | grep -q 'error.*beam' || fail "beam: $(post '{"text": "a", "beam": 2}')"
  post '{"text": "a", "iterations": 5}' | grep -q 'error.*iterations' || fail "iterations"
  kill -TERM $server
  wait $server
  server=""
  refuse 2 "$needs beam" "$TARN" serve run --port 0 --beam 2
fi

# Distillation, by a teacher of another vocabulary; after a kill the same files come out.
"$TARN" train m.yaml --run teacher --set model.task=translation --set data.vocab=plain.model --set data.train=plain.train \
  --set data.valid=plain.valid --set translate.iterations= --set translate.length_beam= >out.txt 2>error.txt ||
  fail "teacher: $(cat error.txt)"
refuse 2 'translate.iterations: a translation model has no iterations' "$TARN" train m.yaml --run no \
  --set model.task=translation --set translate.length_beam=
distill() { "$TARN" distill teacher --source corpus/train.de --vocab v.model --window 40 --threads 1 "$@"; }
distill --output whole >out.txt 2>error.txt || fail "distill: $(cat error.txt)"
grep -q '^new  *300 lines' out.txt && grep -q '^pairs ' out.txt || fail "distill: $(cat out.txt)"
"$TARN" translate teacher --threads 1 <corpus/train.de 2>error.txt | cmp -s - whole.hyp || fail "other translations than the teacher's"
cp whole.hyp.origin parts.hyp.origin
{ head -n 100 whole.hyp; printf 'half a li'; } >parts.hyp.part
distill --output parts --json >out.txt 2>error.txt || fail "going on: $(cat error.txt)"
jq -e '.found == 80 and .translated == 220' out.txt >/dev/null || fail "going on: $(cat out.txt)"
cmp -s whole.hyp parts.hyp && cmp -s whole.tarn parts.tarn && [ ! -e parts.hyp.part ] || fail "a distillation in parts differs"
rm parts.tarn
distill --output parts --json >out.txt 2>error.txt && jq -e '.found == 300 and .translated == 0' out.txt >/dev/null && cmp -s whole.tarn parts.tarn ||
  fail "only preparing: $(cat out.txt error.txt)"
refuse 2 'parts.hyp is not of this teacher, source and options; move it away, or choose another output' \
  "$TARN" distill teacher --source corpus/train.de --vocab v.model --window 40 --beam 2 --output parts
# A teacher of masked translation has options of its own, and the notes are there beside JSON.
masked() { "$TARN" distill run --source lines.de --vocab v.model --threads 1 --iterations 1 --length-beam 2 --output masked "$@"; }
{ head -n 5 corpus/train.de; for i in $(seq 30); do head -n 3 corpus/train.de | tr '\n' ' '; done; echo; } >lines.de
masked --json >out.txt 2>error.txt && jq -e '.found == 0 and .translated == 6' out.txt >/dev/null || fail "masked: $(cat error.txt)"
grep -q "^truncated to the teacher's longest sentence: 1 line$" error.txt || fail "no note: $(cat error.txt)"
grep -q ', iterations 1, length_beam 2$' masked.hyp.origin || fail "origin: $(cat masked.hyp.origin)"
# While another process is at work nothing is written; what it began and did not translate has no origin.
if command -v flock >/dev/null; then
  exec 9>busy.hyp.part
  flock -n 9 || fail "flock"
  refuse 1 'busy.hyp.part: another process is at work on it' distill --output busy
  exec 9>&-
  [ ! -e busy.hyp.origin ] && [ ! -s busy.hyp.part ] || fail "written without the lock: $(ls busy*)"
  distill --output busy >out.txt 2>error.txt && cmp -s whole.hyp busy.hyp || fail "after the other: $(cat error.txt)"
fi
# kill -9 in the middle.
killed=0
for try in $(seq 30); do
  "$TARN" distill teacher --source corpus/train.de --vocab v.model --threads 1 --output killed --window 10 >out.txt 2>error.txt &
  pid=$!
  until [ -s killed.hyp.part ] || gone $pid; do :; done
  sleep 0.0$((RANDOM % 4))
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  if [ ! -e killed.hyp ]; then
    killed=$((killed + 1))
    [ $killed -lt 3 ] || break
  else
    rm -f killed.*
    killed=0
  fi
done
[ $killed -ge 1 ] || fail "it was never killed in the middle"
distill --output killed --window 10 --json >out.txt 2>error.txt || fail "after the kills: $(cat error.txt)"
jq -e '.found > 0 and .found % 10 == 0 and .found + .translated == 300' out.txt >/dev/null || fail "after the kills: $(cat out.txt)"
distill --output tens --window 10 >out.txt 2>error.txt || fail "tens: $(cat error.txt)"
cmp -s tens.hyp killed.hyp && cmp -s tens.tarn killed.tarn && cmp -s tens.hyp.origin killed.hyp.origin || fail "a killed distillation differs"

echo text >mine.hyp
refuse 2 'mine.hyp is not of this teacher' "$TARN" distill teacher --source corpus/train.de --vocab v.model --output mine
refuse 1 'lacking: there is no such file' "$TARN" distill teacher --source corpus/train.de --vocab lacking --output no
refuse 2 '--vocab is missing' "$TARN" distill teacher --source corpus/train.de --output no
"$TARN" train m.yaml --run student --set data.train=whole --set train.max_updates=1 >out.txt 2>error.txt ||
  fail "student: $(cat error.txt)"

# Other iterations when it goes on.
"$TARN" train --resume student --set train.max_updates=2 --set translate.iterations=2 --set translate.length_beam=1 >out.txt 2>error.txt ||
  fail "going on: $(cat error.txt)"
grep -q '^  iterations: 2$' student/config.yaml || fail "going on: $(cat student/config.yaml)"

# In a sweep beside a model that has a beam: each is compared with its own kind.
cat >sweep.yaml <<'END'
base: m.yaml
baseline: masked
seeds: [1]
variants:
  masked: { train.max_updates: 2 }
  longer: { train.max_updates: 3 }
  token: { model.task: translation, train.max_updates: 2, translate.iterations: , translate.length_beam: }
test: { source: corpus/test.de, reference: corpus/test.en }
END
"$TARN" sweep sweep.yaml --output results >out.txt 2>error.txt || fail "sweep: $(cat error.txt)"
"$TARN" sweep sweep.yaml --output results >out.txt 2>error.txt || fail "sweep again: $(cat error.txt)"
"$TARN" compare results --metric bleu >out.txt 2>error.txt || fail "compare: $(cat error.txt)"
ways='masked/seed-1 is a masked translation model and .*token/seed-1 is a translation model, which translate in different ways'
[ "$(grep -c "$ways" out.txt)" = 1 ] || fail "compare: $(cat out.txt)"
grep -q 'losses of .* are not to be compared: a masked translation model and a translation model predict different things' out.txt ||
  fail "no note of losses: $(cat out.txt)"
for metric in nll loss ppl train/loss; do
  refuse 1 'cannot stand in one table: a masked translation model and a translation model predict different things.*; compare bleu' \
    "$TARN" compare results --metric $metric
done
"$TARN" compare results/masked results/longer --metric nll >out.txt 2>error.txt || fail "nll of one task: $(cat error.txt)"
for key in iterations length_beam; do
  cp results/longer/seed-1/test.json test.json
  jq ".$key = 1" test.json >results/longer/seed-1/test.json
  refuse 1 "masked/seed-1 and .*longer/seed-1 cannot stand.*test BLEU has other iterations (4 and .) or length beams (3 and .)" \
    "$TARN" compare results
  cp test.json results/longer/seed-1/test.json
done
rm results/*/seed-1/test.json
cp -r results/longer/seed-1 one
for key in iterations length_beam; do
  sed -E "s/^  $key: .*/  $key: 1/" results/longer/seed-1/config.yaml >one/config.yaml
  refuse 1 'cannot stand in one table: translate.iterations (4 and .) and translate.length_beam (3 and .) must be the same' \
    "$TARN" compare results/masked/seed-1 results/token/seed-1 one --metric bleu
done
sed -i 's/^test: {/test: { beam: 4,/' sweep.yaml
refuse 2 "test.beam: variant masked: $needs beam" "$TARN" sweep sweep.yaml --output other
