#!/usr/bin/env bash
# Sequence tagging, from a table with a label for each word to tarn tag and tarn test: bodies of every kind, resuming,
# and every message.
set -euo pipefail

. "$(dirname "$0")/../helpers.sh"

# Names of one or two words, of persons after "mr" and of places after "in"; the same words also occur elsewhere, so a
# word alone does not determine its label.
awk 'BEGIN {
  srand(5); split("ann bob kim lee may joy", n, " "); split("goes sees buys old red big", w, " ")
  for (i = 0; i < 1500; i++) {
    text = ""; tags = ""
    for (k = 0; k < 3 + int(rand() * 3); k++) {
      r = rand()
      if (r < 0.5) { text = text " " (rand() < 0.3 ? n[1 + int(rand() * 6)] : w[1 + int(rand() * 6)]); tags = tags " O"; continue }
      type = r < 0.75 ? "PER" : "LOC"
      text = text " " (type == "PER" ? "mr" : "in") " " n[1 + int(rand() * 6)]; tags = tags " O B-" type
      if (rand() < 0.5) { text = text "-" n[1 + int(rand() * 6)]; text = text " the-" n[1 + int(rand() * 6)]; tags = tags " I-" type }
    }
    print substr(text, 2) "\t" substr(tags, 2)
  }
}' >all.tsv
head -n 1440 all.tsv >train.tsv
tail -n 60 all.tsv >dev.tsv
cut -f1 train.tsv >text
"$TARN" vocab --type bpe --size 90 --mask-symbols --output v text >/dev/null
p() { "$TARN" prepare --vocab v "$@" >/dev/null; }
p --table train.tsv --text 1 --labels 2 --per-word --output train
p --table dev.tsv --text 1 --labels 2 --per-word --labels-from train --output dev
p --text text --output plain

cat >c.yaml <<'YAML'
model: { task: tagging, d_model: 32, max_length: 96, dropout: 0, norm: pre }
encoder: { layers: "L*2" }
kinds: { L: { mixer: attention, heads: 2, ffn: 64 } }
data: { vocab: v, train: train, valid: dev }
train: { max_updates: 700, lr: 0.006, warmup: 30, schedule: linear, max_tokens: 600, threads: 1, tensorboard: no }
valid: { every: 50 }
YAML
"$TARN" plan c.yaml >/dev/null
"$TARN" train c.yaml --run c --quiet
grep -q '  labels: "B-LOC|B-PER|I-LOC|I-PER|O"' c/config.yaml || fail "labels in the description: $(grep labels c/config.yaml)"
grep -q '  pool: first' c/config.yaml && grep -q '  metric: nll' c/config.yaml && grep -q '  label_smoothing: 0' c/config.yaml ||
  fail "defaults: $(cat c/config.yaml)"
"$TARN" test c --labelled dev >out.txt 2>/dev/null
grep -qE '^accuracy (0\.9[5-9]|1\.0)' out.txt && grep -qE '^F1 (0\.9[5-9]|1\.0)' out.txt || fail "it has not learnt: $(cat out.txt)"
grep -qE '^60 rows, [0-9]+ words in ' out.txt || fail "$(cat out.txt)"
grep -q '"f1": {' c/test.json && grep -q '"words": ' c/test.json || fail "test.json: $(cat c/test.json)"
grep -q '"valid_f1":' c/log.jsonl && grep -q '"valid_accuracy":' c/log.jsonl || fail "the log has no F1"

# The labels equal those counted by the test, independent of batching, and F1 is that of the program below.
cut -f1 dev.tsv >lines
cut -f2 dev.tsv >right
"$TARN" tag c lines --labels >all.txt 2>/dev/null
"$TARN" tag c --labels --max-tokens 1 --window 7 <lines >few.txt 2>/dev/null
cmp all.txt few.txt || fail "labels depend on what is computed together"
paste right all.txt | awk -F'\t' '
  function spans(text, of, tag,   n, i, w, from, type) {  # only IOB2, which these sentences have
    n = split(text, w, " "); from = 0
    for (i = 1; i <= n + 1; i++) {
      if (from && (i > n || w[i] !~ /^I-/ || substr(w[i], 3) != type)) { of[tag " " from " " i " " type]; from = 0 }
      if (i <= n && w[i] ~ /^B-/ || !from && i <= n && w[i] ~ /^I-/) { from = i; type = substr(w[i], 3) }
    }
    words = n
  }
  { spans($1, gold, NR); spans($2, found, NR); n += split($1, a, " "); split($2, b, " "); for (i in a) same += a[i] == b[i] }
  END {
    for (s in gold) { g++; both += s in found }
    for (s in found) f++
    printf "accuracy %.4f\nF1 %.4f\n", same / n, 2 * both / (g + f)
  }' >counted.txt
while read -r name value; do
  grep -q "^$name $value " out.txt || fail "tarn tag gives $name $value, tarn test says $(cat out.txt)"
done <counted.txt

# One word and its label per line, and an empty line after a sentence; with any white space between words.
printf ' mr  ann\tgoes \nin may\n' >two
"$TARN" tag c two >found.txt 2>err.txt
printf 'mr\tO\nann\tB-PER\ngoes\tO\n\nin\tO\nmay\tB-LOC\n\n' | cmp - found.txt || fail "words and labels: $(cat found.txt)"
"$TARN" tag c two --json >json.txt 2>/dev/null
head -n 1 json.txt | grep -qE '^\{"line":1,"truncated":false,"replaced":false,"words":\["mr","ann","goes"\],"labels":\["O","B-PER","O"\],"probabilities":\[[0-9.]+,[0-9.]+,[0-9.]+\]\}$' || fail "JSON: $(cat json.txt)"
printf 'mr \xff goes\n' | "$TARN" tag c 2>err.txt >found.txt
grep -q 'invalid UTF-8 replaced in 1 line' err.txt && grep -q $'^\xEF\xBF\xBD\t' found.txt || fail "invalid UTF-8: $(cat found.txt err.txt)"
# Words that the model does not read have no label.
printf 'ann %.0s' {1..200} >long
"$TARN" tag c long --labels 2>err.txt >found.txt
grep -q '1 line cut to what the model takes' err.txt || fail "a cut line is not counted: $(cat err.txt)"
[ "$(wc -w <found.txt)" -eq 200 ] && grep -q ' _$' found.txt || fail "labels of a cut line: $(cat found.txt)"
refuse 1 'long:1: [0-9]* tokens, and the model takes 96' "$TARN" tag c long --overlong refuse

# A resumed training equals an uninterrupted one; another number of ranks has its own result.
"$TARN" train c.yaml --run parts --quiet --set train.max_updates=20 --set train.schedule=constant
"$TARN" train --resume parts --quiet --set train.max_updates=40
"$TARN" train c.yaml --run whole --quiet --set train.max_updates=40 --set train.schedule=constant
for run in parts whole; do "$TARN" test "$run" --labelled dev --checkpoint last 2>/dev/null | sed 's/ in .* s, / /' >$run.txt; done
cmp parts.txt whole.txt || fail "a resumed training is another one: $(diff parts.txt whole.txt)"
cmp <("$TARN" tag parts lines --checkpoint last 2>/dev/null) <("$TARN" tag whole lines --checkpoint last 2>/dev/null) || fail "a resumed training is another one"

# A decoder's last token of a word; a body from a masked language model; other vocabularies; int8.
sed 's/encoder: /decoder: /' c.yaml >decoder.yaml
updates=350
[ -z "${TARN_SANITIZED:-}" ] || updates=40
"$TARN" train decoder.yaml --run decoder --quiet --set train.max_updates=$updates
grep -q '  pool: last' decoder/config.yaml || fail "the pool of a decoder: $(grep pool decoder/config.yaml)"
"$TARN" test decoder --labelled dev 2>/dev/null >out.txt || fail "test of a decoder"
[ -n "${TARN_SANITIZED:-}" ] || grep -qE '^F1 (0\.9|1\.0)' out.txt || fail "a decoder has not learnt: $(cat out.txt)"
sed 's/ task: tagging,//; s/valid: dev/valid: plain/; s/train: train/train: plain/' c.yaml >masked.yaml
"$TARN" train masked.yaml --run masked --quiet --set train.max_updates=40
"$TARN" train c.yaml --run fine --quiet --set train.init_from=masked --set train.max_updates=40
"$TARN" tag c lines --precision int8 --labels >int8.txt 2>/dev/null
[ "$(wc -w <int8.txt)" -eq "$(wc -w <all.txt)" ] || fail "int8"
"$TARN" export --precision int8 c int8 && "$TARN" tag int8 lines --labels 2>err.txt | cmp -s - int8.txt || fail "a file in int8: $(cat err.txt)"
for type in char byte whitespace; do
  if [ $type = byte ]; then files=(); else files=(--size 60 text); fi
  "$TARN" vocab --type $type "${files[@]}" --mask-symbols --output v.$type >/dev/null
  "$TARN" prepare --vocab v.$type --table train.tsv --text 1 --labels 2 --per-word --output train.$type >/dev/null
  "$TARN" train c.yaml --run run.$type --quiet --set data.vocab=v.$type --set data.train=train.$type --set data.valid= --set train.max_updates=3 --set train.schedule=constant
  [ "$("$TARN" tag run.$type two --labels 2>/dev/null | wc -w)" -eq 5 ] || fail "a vocabulary of type $type"
done

# A sweep is tested and compared by F1 if that selected the models, else by accuracy.
cat >sweep.yaml <<'YAML'
base: c.yaml
baseline: one
seeds: [1, 2]
threads: 1
set: { train.max_updates: 40, valid.metric: f1, valid.every: 20 }
test: { labelled: dev }
variants: { one: {}, two: { model.dropout: 0.1 } }
YAML
"$TARN" sweep sweep.yaml --output sweep --quiet
"$TARN" compare sweep >out.txt
grep -q '^valid/f1 over T' out.txt && grep -q 'test f1' out.txt && grep -qE '^two +2 ' out.txt || fail "the comparison: $(cat out.txt)"
"$TARN" report sweep --output page >out.txt && grep -q 'F1' page/report.html || fail "the report has no F1"
sed 's/labelled: dev/labelled: plain/' sweep.yaml >wrong.yaml
refuse 1 'test: labelled: plain: the shard has no labels' "$TARN" sweep wrong.yaml --output none

# --- over HTTP, if the build and the machine support it
if command -v curl >/dev/null && ! { "$TARN" serve nowhere 2>&1 || true; } | grep -q "no libmicrohttpd"; then
  "$TARN" serve c --port 0 --threads 1 >address.txt 2>server.txt &
  server=$!
  trap 'kill -KILL "$server" 2>/dev/null || true' EXIT
  within_two_minutes eval '[ -s address.txt ] || ! kill -0 $server 2>/dev/null'
  url=$(sed 's|/$||' address.txt)
  grep -q ': /tag$' server.txt || fail "the paths of a tagging model: $(cat server.txt)"
  post() { curl -s -H 'Content-Type: application/json' -d "$2" "$url$1"; }
  post /tag '{"text": ["mr  ann", "in may"]}' >answer.json
  [ "$(jq -c '[.labels[].words[] | [.word, .label]]' answer.json)" = '[["mr","O"],["ann","B-PER"],["in","O"],["may","B-LOC"]]' ] || fail "/tag: $(cat answer.json)"
  post /tag '{"text": "a", "pair": "b"}' | grep -q 'is for labels of pairs of texts' || fail "/tag takes pairs"
  post /tag '{"texts": "a"}' | grep -q '/tag knows no \\"texts\\"; did you mean' || fail "/tag takes any key"
  post /classify '{"text": "a"}' | grep -q 'cannot do /classify' || fail "a tagging model classifies"
  # A request is counted after its answer is sent, possibly after it has been read.
  within_two_minutes eval "curl -s '$url/metrics' | grep -q 'path=\"/tag\",code=\"200\"} 1\$'"
  kill "$server"
  wait "$server" || fail "the server does not stop: $(cat server.txt)"
fi

# --- messages
printf 'a\n \n' >blank
refuse 1 'blank:2: a sentence without a word' "$TARN" tag c blank
refuse 1 'there is no line to tag' "$TARN" tag c /dev/null
refuse 1 'plain.tarn: its words have no labels; tarn prepare --table --per-word' "$TARN" test c --labelled plain
printf 'ann\tX\nbob\tY\n' >rows.tsv
p --table rows.tsv --text 1 --labels 2 --output rows
refuse 1 'rows.tarn: its words have no labels' "$TARN" test c --labelled rows
refuse 2 'c.*: a tagging model does not classify; its verb is tag (tarn tag)' "$TARN" classify c lines
refuse 2 'a tagging model does not translate' "$TARN" translate c </dev/null
refuse 2 'a tagging model does not score single sentences' "$TARN" score c lines
t() { refuse "$1" "$2" "$TARN" train c.yaml --run none "${@:3}"; }
t 2 'head.pool: a token stands for each word; choose first or last' --set head.pool=mean
t 2 'a tagging model has no bleu; its measures are loss, nll, accuracy, f1' --set valid.metric=bleu
t 2 'model.task: "taging" is not one of .*; did you mean "tagging"?' --set model.task=taging
t 1 'rows.tarn: its words have no labels' --set data.train=rows
sed 's/task: tagging/task: classification/' c.yaml >classes.yaml
refuse 1 'train.tarn: its labels are those of words, and a classifier has those of sentences' "$TARN" train classes.yaml --run none
