# A masked language model from text: vocabulary, rows, plan, training, resuming, pruning, another training from its
# weights, a sweep with its comparison and report, and one clear line for every use that it lacks.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"

"$TARN" corpus --output corpus --sentences 600 --held-out 60 >out.txt 2>error.txt
"$TARN" vocab --type bpe --size 300 --mask-symbols --output v.model corpus/train.en >out.txt 2>error.txt
"$TARN" vocab --type bpe --size 300 --output plain.model corpus/train.en >out.txt 2>error.txt
for part in train valid; do
  "$TARN" prepare --vocab v.model --text "corpus/$part.en" --output "$part" >out.txt 2>error.txt
  "$TARN" prepare --vocab plain.model --text "corpus/$part.en" --output "plain.$part" >out.txt 2>error.txt
  "$TARN" prepare --vocab v.model --text "corpus/$part.en" --pack 62 --output "packed.$part" >out.txt 2>error.txt
done

cat >m.yaml <<'END'
model:
  { d_model: 16, max_length: 64, positions: learned, embedding_norm: yes, embedding_scale: no, activation: gelu, dropout: 0 }
encoder: { layers: L R L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 32 }
  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }
data: { vocab: v.model, train: train, valid: valid }
masking: { whole_words: yes }
train: { max_updates: 30, lr: 0.01, warmup: 5, max_tokens: 1024, label_smoothing: 0, log_every: 10, threads: 1 }
valid: { every: 10, at_start: yes, metric: accuracy }
END

"$TARN" plan m.yaml >out.txt
grep -q '^encoder 2 R  *frozen' out.txt && grep -q '^output ' out.txt || fail "plan: $(cat out.txt)"
"$TARN" train m.yaml --run run >out.txt 2>error.txt || fail "train: $(cat error.txt)"
grep -q 'best  *accuracy 0\.[0-9]* at update' out.txt || fail "no best accuracy: $(cat out.txt)"
[ "$(grep -c '"valid_accuracy":0\.' run/log.jsonl)" -eq 4 ] || fail "log: $(cat run/log.jsonl)"
"$TARN" train m.yaml --run packed --set data.train=packed.train --set data.valid=packed.valid >out.txt 2>error.txt ||
  fail "packed rows: $(cat error.txt)"

# The token in front of a window or a sentence takes a row.
for window in 63 64; do
  "$TARN" prepare --vocab v.model --text corpus/train.en --stream "$window" --output "stream.$window" >out.txt 2>error.txt
done
"$TARN" train m.yaml --run windows --set data.train=stream.63 --set train.max_updates=1 >out.txt 2>error.txt ||
  fail "windows of 63: $(cat error.txt)"
! grep -q 'left out' error.txt || fail "windows of 63: $(cat error.txt)"
full='stream.64.tarn: its windows have 64 tokens and one in front, more than model.max_length (64); run tarn prepare --stream 63'
refuse 1 "$full" "$TARN" train m.yaml --run no --set data.train=stream.64
refuse 1 "$full" "$TARN" train m.yaml --run no --set data.valid=stream.64
refuse 1 "$full" "$TARN" plan m.yaml --set data.train=stream.64
"$TARN" train m.yaml --run short --set model.max_length=9 --set train.max_updates=1 >out.txt 2>error.txt || fail "$(cat error.txt)"
grep -q 'they are longer than model.max_length less the token in front (8 tokens)' error.txt || fail "$(cat error.txt)"

# Stopped and resumed: the same model.
"$TARN" train m.yaml --run parts --set train.max_updates=17 >out.txt 2>error.txt
"$TARN" train --resume parts --set train.max_updates=30 >out.txt 2>error.txt || fail "resume: $(cat error.txt)"
"$TARN" export --dense run a.safetensors --checkpoint last >out.txt 2>error.txt
"$TARN" export --dense parts b.safetensors --checkpoint last >out.txt 2>error.txt
cmp -s a.safetensors b.safetensors || fail "a training in parts has other weights"

"$TARN" inspect run >out.txt 2>error.txt
grep -q '^output.dense.weight .* output' out.txt && grep -q '^embeddings.norm.gain .* embeddings' out.txt ||
  fail "inspect: $(cat out.txt)"
"$TARN" prune run --encoder-layers-to-keep 1,3 pruned.safetensors >out.txt 2>error.txt || fail "prune: $(cat error.txt)"
"$TARN" train m.yaml --run again --set encoder.layers_to_keep=[1,3] --set train.init_from=pruned.safetensors \
  --set train.max_updates=1 >out.txt 2>error.txt || fail "init_from: $(cat error.txt)"

# A sweep and its reports.
cat >sweep.yaml <<'END'
base: m.yaml
baseline: regular
seeds: [1, 2]
variants:
  regular: { encoder.layers: L L L }
  reservoir: { encoder.layers: L R L }
END
"$TARN" sweep sweep.yaml --output results >out.txt 2>error.txt || fail "sweep: $(cat error.txt)"
"$TARN" compare results --metric accuracy >out.txt 2>error.txt || fail "compare: $(cat error.txt)"
grep -q accuracy out.txt && grep -q reservoir out.txt || fail "compare: $(cat out.txt)"
"$TARN" report results --metric valid/accuracy --output report >out.txt 2>error.txt || fail "report: $(cat error.txt)"
grep -qi accuracy report/report.md || fail "the report has no accuracy"

refuse 2 'a masked language model does not translate; only translation models' "$TARN" translate run
# Pseudo-log-likelihoods: tokens sum to lines and lines to the summary, independent of batching.
head -n 5 corpus/valid.en >five
"$TARN" score run five --json --tokens >lines.json 2>error.txt || fail "score: $(cat error.txt)"
"$TARN" score run five --json --summary-only --max-tokens 40 >sum.json 2>error.txt || fail "summary: $(cat error.txt)"
jq -se --slurpfile sum sum.json 'def near(a; b): (a - b) | fabs < 1e-4;
  all(.[]; .tokens == (.pieces | length) and near(.log_probability; [.pieces[][2]] | add)) and
  near(map(.log_probability) | add; $sum[0].log_probability) and (map(.tokens) | add) == $sum[0].tokens' lines.json >/dev/null ||
  fail "pseudo-log-likelihoods do not add up: $(cat lines.json sum.json)"
[ "$("$TARN" score run five 2>/dev/null | cut -f1,2 | tr '\t' ' ')" = "$(jq -r '"\(.log_probability) \(.tokens)"' lines.json |
  awk '{ printf "%.6f %d\n", $1, $2 }')" ] || fail "text and JSON differ"
"$TARN" export --precision int4 run rounded && "$TARN" score rounded five >rounded.txt 2>error.txt || fail "int4: $(cat error.txt)"
"$TARN" score run five --precision int4 2>error.txt | cmp -s - rounded.txt || fail "a file in int4 scores otherwise: $(cat error.txt)"
refuse 2 'sees both sides of a token' "$TARN" score run five --stride 4
refuse 2 'a masked language model does not continue text' "$TARN" generate run --prompt a
refuse 2 'plain.model: the vocabulary has no <mask>.*--mask-symbols' "$TARN" train m.yaml --run no \
  --set data.vocab=plain.model --set data.train=plain.train --set data.valid=plain.valid
refuse 1 'valid.tarn: there is nothing to predict.*raise masking.share' "$TARN" train m.yaml --run none --quiet \
  --set masking.share=0.0000001

# The example, on a small text: it prepares the data, and its descriptions are valid.
mkdir -p babylm/train babylm/dev
cp corpus/train.en babylm/train/a.train
cp corpus/valid.en babylm/dev/a.dev
DRY=1 PIECES=300 TARN=$TARN bash "$TARN_SOURCE_DIR/examples/babylm/masked.sh" babylm example >out.txt 2>error.txt ||
  fail "examples/babylm/masked.sh: $(cat error.txt)"
grep -q transformer-12 out.txt || fail "no runs: $(cat out.txt)"
refuse 2 'not of .* in 400 pieces' env DRY=1 PIECES=400 TARN="$TARN" bash "$TARN_SOURCE_DIR/examples/babylm/masked.sh" babylm example
