#!/usr/bin/env bash
# Classification and regression from tables to labels: training, bodies of every kind, tarn classify and tarn test, and
# every message.
set -euo pipefail

. "$(dirname "$0")/../helpers.sh"

# A sentence is "good" if it contains an a; a pair if both do. The number is the count.
awk 'BEGIN {
  srand(7); split("b c d e f g", w, " "); print "first\tsecond\tlabel\tcount"
  for (i = 0; i < 400; i++) {
    n = 0; for (s = 0; s < 2; s++) {
      has[s] = rand() < 0.5; line[s] = ""
      for (k = 0; k < 3 + int(rand() * 4); k++) line[s] = line[s] (k ? " " : "") w[1 + int(rand() * 6)]
      if (has[s]) { line[s] = "a " line[s]; n++ }
    }
    print line[0] "\t" line[1] "\t" (has[0] ? "good|fine" : "bad") "\t" n
  }
}' >all.tsv
head -n 351 all.tsv >train.tsv
{ head -n 1 all.tsv; tail -n 50 all.tsv; } >dev.tsv
tail -n +2 train.tsv | cut -f1 >text
"$TARN" vocab --type whitespace --size 40 --mask-symbols --output v text
p() { "$TARN" prepare --vocab v "$@" >/dev/null; }
p --table train.tsv --text first --pair second --labels label --output train
p --table dev.tsv --text first --pair second --labels label --labels-from train --output dev
p --table train.tsv --text first --labels count --numbers --output numbers
p --text text --output plain

cat >c.yaml <<'END'
model: { task: classification, d_model: 16, max_length: 32, segments: 2, dropout: 0, norm: pre }
encoder: { layers: "L*2" }
kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }
head: { hidden: 16 }
data: { vocab: v, train: train, valid: dev }
train: { max_updates: 150, lr: 0.01, warmup: 10, schedule: linear, label_smoothing: 0, max_tokens: 200, threads: 1, tensorboard: no }
valid: { every: 50 }
END
# 50 predictions of 8 bytes are kept, and their measures take three numbers per class.
"$TARN" plan c.yaml --json | grep -q '"validation_bytes":448,' || fail "plan: $("$TARN" plan c.yaml --json | grep -o '"validation_bytes":[0-9]*')"
"$TARN" train c.yaml --run c --quiet
"$TARN" test c --labelled dev >out.txt 2>/dev/null
grep -qE '^accuracy (0\.9|1\.0)' out.txt || fail "it has not learnt: $(cat out.txt)"
grep -q '^F1 ' out.txt && grep -q '^Matthews correlation ' out.txt && grep -q '^50 rows in' out.txt || fail "$(cat out.txt)"
grep -q '"mcc": {' c/test.json && grep -q '"rows": 50,' c/test.json || fail "test.json: $(cat c/test.json)"
grep -q '  labels: "bad|good||fine"' c/config.yaml || fail "labels in the description: $(grep labels c/config.yaml)"

# The predictions equal those counted by the test, independent of batching.
tail -n +2 dev.tsv | cut -f1,2 >pairs
"$TARN" classify c pairs --top 9 >all.txt 2>err.txt
"$TARN" classify c --max-tokens 1 --window 7 --top 9 <pairs >few.txt 2>/dev/null
cmp all.txt few.txt || fail "labels depend on what is computed together"
right=$(paste <(cut -f1 all.txt) <(tail -n +2 dev.tsv | cut -f3) | awk -F'\t' '$1 == $2 { n++ } END { printf "%.4f", n / NR }')
grep -q "^accuracy $right " out.txt || fail "classify is right in $right, test says $(head -n 1 out.txt)"
awk -F'\t' 'NF != 4 || $2 + $4 < 0.99999 || $2 + $4 > 1.00001 || $2 < $4 { exit 1 }' all.txt || fail "probabilities: $(head -n 3 all.txt)"
for precision in int8 int4; do
  "$TARN" classify c --precision $precision --top 9 pairs >rounded.txt 2>err.txt || fail "$precision: $(cat err.txt)"
  cmp -s rounded.txt all.txt && fail "$precision is fp32"
  "$TARN" export --precision $precision c $precision && "$TARN" classify $precision --top 9 pairs 2>err.txt | cmp -s - rounded.txt ||
    fail "a file in $precision classifies otherwise: $(cat err.txt)"
done
"$TARN" classify c --json pairs >json.txt 2>/dev/null  # complete: it would fail if its reader exits
head -n 1 json.txt | grep -qE '^\{"line":1,"truncated":false,"replaced":false,"label":"(bad|good\|fine)","probabilities":\{"(bad|good\|fine)":[0-9.]+\}\}$' || fail "JSON"
printf 'a b %.0s' {1..40} >long
"$TARN" classify c long 2>err.txt >/dev/null
grep -q '1 line cut to what the model takes' err.txt || fail "a cut line is not counted: $(cat err.txt)"

refuse 1 'long:1: 82 tokens, and the model takes 32' "$TARN" classify c long --overlong refuse
printf 'a\tb\tc\n' >tabs
refuse 1 'tabs:1: more than one tab' "$TARN" classify c tabs
printf 'a\n\t\n' >blank
refuse 1 'blank:2: a sentence that gives no token' "$TARN" classify c blank
refuse 1 'there is no line to classify' "$TARN" classify c /dev/null
if [ -w /dev/full ]; then  # one line, without a note on the checkpoint
  refuse 1 'cannot write to standard output' bash -c '"$TARN" classify c pairs >/dev/full'
fi
refuse 1 'numbers.tarn: its labels are numbers, and classification needs classes' "$TARN" test c --labelled numbers
refuse 1 'plain.tarn: its sentences have no labels' "$TARN" test c --labelled plain
refuse 2 'or --labelled PREFIX' "$TARN" test c --labelled dev --source pairs
refuse 2 'takes no --beam' "$TARN" test c --labelled dev --beam 2
refuse 2 'a classifier does not translate' "$TARN" translate c </dev/null
refuse 2 'a classifier does not score single sentences' "$TARN" score c pairs
"$TARN" vocab --type whitespace --size 12 --mask-symbols --output v30 text
"$TARN" prepare --vocab v30 --table dev.tsv --text first --labels label --output other >/dev/null
refuse 1 'other.tarn: it was prepared with another vocabulary' "$TARN" test c --labelled other
printf 'x\ta\ny\tb\n' >ab.tsv
p --table ab.tsv --text 1 --labels 2 --output ab
refuse 1 'ab.tarn: its class "a" is none of the 2 of the model, such as "bad"' "$TARN" test c --labelled ab

# Plans and descriptions.
t() { refuse "$1" "$2" "$TARN" plan c.yaml "${@:3}"; }
t 2 'the first token of a decoder sees no other one' --set encoder= --set decoder='{layers: L}' --set model.segments=0 --set head.pool=cls
t 2 'is for a decoder; choose cls or mean' --set head.pool=last
t 2 'a classifier has no bleu; its measures are loss, nll, accuracy, f1, mcc' --set valid.metric=bleu
t 2 'regression has no classes' --set model.task=regression --set head.labels='a|b'
t 2 'is for classes; regression has numbers' --set model.task=regression --set train.label_smoothing=0.1
t 2 'did you mean "pool"' --set head.pol=mean
t 1 'none.tarn: there is no such file' --set data.train=none
t 1 'plain.tarn: its sentences have no classes' --set data.train=plain
refuse 2 'train.schedule linear needs train.max_updates above train.warmup' "$TARN" train c.yaml --run x --set train.max_updates=5
"$TARN" vocab --type whitespace --size 40 --output bare text
"$TARN" prepare --vocab bare --table train.tsv --text first --labels label --output bare_train >/dev/null
refuse 2 'bare: the vocabulary has no <cls>, which head.pool: cls reads' "$TARN" train c.yaml --run x --quiet --set data.vocab=bare --set data.train=bare_train --set data.valid=

# Bodies: a masked language model, a language model, the encoder of a translation model; regression with one of them.
cat >masked.yaml <<'END'
model: { d_model: 16, max_length: 32, segments: 2, dropout: 0, norm: pre }
encoder: { layers: "L*2" }
kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }
data: { vocab: v, train: plain }
train: { max_updates: 5, max_tokens: 200, threads: 1, tensorboard: no }
END
sed 's/encoder:/decoder:/; s/segments: 2, //' masked.yaml >lm.yaml
"$TARN" train masked.yaml --run masked --quiet
"$TARN" train lm.yaml --run lm --quiet
"$TARN" prepare --vocab v --source text --target text --output both >/dev/null
sed 's/segments: 2, //; s/train: plain/train: both/; s/^kinds/decoder: { layers: D }\nkinds/; s/}} }$/}}, D: { mixer: attention, heads: 2, ffn: 8 } }/' masked.yaml |
  sed 's/ffn: 32 } }/ffn: 32 }, D: { mixer: attention, heads: 2, ffn: 8 } }/' >mt.yaml
"$TARN" train mt.yaml --run mt --quiet
f() { "$TARN" train c.yaml --quiet --set train.max_updates=20 --set valid.every=20 --run "$@" 2>error.txt || fail "$*: $(cat error.txt)"; }
f from_masked --set train.init_from=masked
f from_mt --set train.init_from=mt --set model.segments=0 --set head.pool=mean
f from_lm --set train.init_from=lm --set encoder= --set decoder='{layers: L*2}' --set model.segments=0
f again --set train.init_from=c
f number --set model.task=regression --set data.train=numbers --set data.valid=numbers --set train.init_from=lm \
  --set encoder= --set decoder='{layers: L*2}' --set model.segments=0
"$TARN" test number --labelled numbers >measures.txt 2>/dev/null
grep -q '^Pearson' measures.txt || fail "regression has no Pearson's correlation"
"$TARN" classify number text >numbers.txt 2>/dev/null
head -n 1 numbers.txt | grep -qE '^-?[0-9.]+(e-?[0-9]+)?$' || fail "regression tells no number"
# Unlimited positions must not make classify accept rows that a test leaves out.
f boundless --set model.positions=none
refuse 1 'long:1: 82 tokens, and the model takes 32' "$TARN" classify boundless long --overlong refuse
refuse 1 'dev.tarn: its labels are classes, and regression needs numbers' "$TARN" test number --labelled dev
# inspect prints the contents of a set, and of a model trained on it.
refuse 1 'both.tarn: it holds pairs of a translation, but a classifier is trained on sentences with labels; run tarn prepare --table' \
  "$TARN" train c.yaml --run x --set data.valid=both
refuse 1 'dev.tarn: it holds sentences with labels, but a translation model is trained on pairs' \
  "$TARN" train mt.yaml --run x --set data.train=dev
refuse 2 'c.yaml: this is a configuration; the description of a sweep' "$TARN" sweep c.yaml --output x
# Layers frozen from the first update remain those of the body.
f frozen --set train.init_from=masked --set 'train.freeze={embeddings: 0, encoder.layer1: 0, encoder.layer2: 0}'
refuse 1 'was trained with another vocabulary' "$TARN" train c.yaml --run y --quiet --set train.init_from=masked --set data.vocab=v30 --set data.train=other --set data.valid=

# The server gives the same labels, and a refused text affects only its own request.
if command -v curl >/dev/null && ! { "$TARN" serve nowhere 2>&1 || true; } | grep -q "no libmicrohttpd"; then
  "$TARN" serve c --port 0 --threads 1 >address.txt 2>server.txt &
  server=$!
  trap 'kill -KILL $server 2>/dev/null || true' EXIT
  within_two_minutes test -s address.txt || fail "serve: $(cat server.txt)"
  ask() { curl -s -o answer.json -w '%{http_code}' -H 'Content-Type: application/json' -d "$1" "$(cat address.txt)classify"; }
  [ "$(ask "$(jq -R 'split("\t")' pairs | jq -s -c '{text: map(.[0]), pair: map(.[1])}')")" = 200 ] || fail "$(cat answer.json)"
  round='[.label, (.probabilities | map_values(. * 1e5 | round))]'
  "$TARN" classify c --json --top 9 pairs 2>/dev/null | jq -S -c "$round" >expected.txt
  jq -S -c ".labels[] | $round" answer.json | diff - expected.txt || fail "other labels are served"
  [ "$(ask '{"text":"","pair":"a"}')" = 422 ] && grep -q 'a sentence that gives no token' answer.json || fail "$(cat answer.json)"
  [ "$(ask '{"text":"a\tb"}')" = 400 ] && [ "$(ask '{"text":["a","b"],"pair":["c"]}')" = 400 ] || fail "$(cat answer.json)"
  kill -TERM $server
  wait $server || fail "the server ended with $?: $(cat server.txt)"
  trap - EXIT
fi
