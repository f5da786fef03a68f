# tarn dynamics: a period, layers and a recurrence; tables, JSON, the page with its figures and CSV, the curve over a
# training, spectral radii; and every message. tests/unit and tests/golden check the numbers.
set -u
. "$(dirname "$0")/../helpers.sh"
dynamics() { "$TARN" dynamics "$@" --threads 1 >printed.txt 2>error.txt || fail "dynamics $*: $(cat error.txt)"; }

"$TARN" corpus --output corpus --sentences 60 --held-out 6 >/dev/null || fail "corpus"
"$TARN" vocab --type whitespace --size 60 --output v corpus/train.de corpus/train.en >/dev/null || fail "vocab"
"$TARN" prepare --vocab v --source corpus/train.de --target corpus/train.en --output pairs >/dev/null 2>&1 || fail "prepare"
head -3 corpus/valid.de >three
cat >shared.yaml <<'END'
model: { d_model: 16, max_length: 40, dropout: 0 }
encoder: { layers: "(R1 L1)*2" }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 24 }
  R: { mixer: attention, heads: 2, ffn: 24, frozen: yes }
data: { vocab: v, train: pairs }
train: { max_updates: 4, save_every: 2, max_tokens: 400, threads: 1, tensorboard: no }
END
sed 's/(R1 L1)\*2/L*3/' shared.yaml >layers.yaml
cat >esn.yaml <<'END'
model: { d_model: 16, max_length: 40, dropout: 0, embeddings: none, frozen_embeddings: decoder, positions: none }
decoder: { layers: E }
kinds: { E: { mixer: esn, hidden: 20, ffn: 0, frozen: yes } }
data: { vocab: v }
END

# A period is iterated beyond the model's depth.
dynamics shared.yaml --input three --iterations 20 --exponents 3
for part in "^map .*(R1 L1)\*2.*the model does 2 iterations" "^computed .*in double on the device reference" \
  "^line .*largest.*KY dim.*settles on.*two starts" "^spectrum  *1  *2  *3$" "^over 3 sentences: median" "participation ratio at the end"; do
  grep -q -- "$part" printed.txt || fail "no \"$part\" in: $(cat printed.txt)"
done
[ "$(grep -c '^line [0-9]' printed.txt)" -eq 3 ] || fail "not a spectrum for each sentence: $(cat printed.txt)"
dynamics shared.yaml --input three --iterations 5 --exponents 2 --precision fp32
grep -q "^computed .*in fp32 on the device cpu" printed.txt || fail "fp32: $(cat printed.txt)"
# Parts with special kernels for perturbations.
for part in "synthesizer_dense, hidden: 4" "linear_attention" "performer, features: 6" "attention, kv_heads: 1"; do
  sed "s/(R1 L1)\*2/M1*2/; s/^kinds:/kinds:\n  M: { mixer: $part, heads: 2, ffn: 24 }/; s/max_length: 40/max_length: 40, positions: shaw/" shared.yaml >part.yaml
  dynamics part.yaml --input three --iterations 5 --exponents 2 --json
  exact=$(jq -s '[.[] | select(.kind == "sentence") | .exponents[0]] | add' printed.txt)
  dynamics part.yaml --input three --iterations 5 --exponents 2 --json --precision fp32
  jq -e -s --argjson exact "$exact" '[.[] | select(.kind == "sentence") | .exponents[0]] | add - $exact | . < 1e-3 and . > -1e-3' printed.txt >/dev/null ||
    fail "$part: in double $exact, in fp32 $(cat printed.txt)"
done
"$TARN" dynamics shared.yaml --iterations 5 --threads 1 --input - <three >/dev/null 2>error.txt || fail "standard input: $(cat error.txt)"

# The same text and seed give the same numbers, another seed different ones.
for seed in 1 1 2; do
  dynamics shared.yaml --input three --iterations 5 --exponents 2 --seed $seed --json
  sed -E 's/"(seconds|memory_bytes)":[0-9.e+-]+,?//g' printed.txt >>all.txt
done
[ "$(sort all.txt | uniq -d | wc -l)" -ge 4 ] && [ "$(sort -u all.txt | wc -l)" -ge 8 ] || fail "seeds: $(cat all.txt)"

# Layers without sharing are iterated up to the model's depth.
dynamics layers.yaml --input three --exponents 2 --json
[ "$(wc -l <printed.txt)" -eq 5 ] || fail "not a line for the map, the sentences and the summary: $(cat printed.txt)"
if command -v jq >/dev/null; then
  jq -e -s '.[0] | .map == "layers" and .iterations == 3 and .trained == false and .precision == "double"' printed.txt >/dev/null || fail "map: $(cat printed.txt)"
  jq -e -s '.[1] | .line == 1 and (.exponents | length) == 2 and .exponents[0] >= .exponents[1] and .settling == "unknown"' printed.txt >/dev/null || fail "sentence: $(cat printed.txt)"
  jq -e -s '.[-1] | .kind == "summary" and .sentences == 3 and .exponent.count == 3 and .exponent.lower <= .exponent.median' printed.txt >/dev/null || fail "summary: $(cat printed.txt)"
fi

# Several models, over a training, as a page.
followed="dynamics={ input: three, every: 2, iterations: 12, exponents: 2, precision: double }"
"$TARN" train shared.yaml --run run --set "$followed" >trained.txt 2>error.txt || fail "train: $(cat error.txt)"
[ "$(grep -c "^update [024] .*  exponent -\?[0-9.]* (quartiles .* of the sentences)$" trained.txt)" -eq 3 ] || fail "exponents: $(cat trained.txt)"
dynamics run shared.yaml --input three --iterations 12 --exponents 2 --over-training --output page --title "Two <models>"
grep -q "^page/dynamics.html$" printed.txt || fail "no page: $(cat printed.txt)"
grep -q "took run/checkpoint_" error.txt || fail "it does not say which checkpoint: $(cat error.txt)"
for file in dynamics.html dynamics.md sentences.csv iterations.csv training.csv; do [ -s page/$file ] || fail "no $file"; done
[ ! -e page/radii.csv ] || fail "radii without any"
[ "$(wc -l <page/sentences.csv)" -eq 7 ] || fail "sentences.csv: $(cat page/sentences.csv)"
[ "$(wc -l <page/iterations.csv)" -eq 79 ] || fail "iterations.csv has $(wc -l <page/iterations.csv) lines"
[ "$(cut -d, -f1 page/training.csv | tail -n +2 | tr '\n' ' ')" = "2 4 " ] || fail "training.csv: $(cat page/training.csv)"
# A training computes the same of itself.
for update in 2 4; do
  said=$(sed -n "s/^{\"kind\":\"dynamics\",\"step\":$update,.*\"exponent\":\([^,]*\),.*/\1/p" run/log.jsonl)
  awk -F, -v update=$update -v said="$said" '$1 == update && said != "" { d = $3 - said; found = d * d < 1e-16 } END { exit !found }' page/training.csv ||
    fail "update $update: \"$said\" in the log, and $(cat page/training.csv)"
done
grep -q "Two &lt;models&gt;" page/dynamics.html || fail "the title is not escaped"
# The most important parts come first; the rows of sentences are folded after the figures.
order=$(grep -o '<h2 id="[a-z]*"\|<figure id\|<details id="sentences"' page/dynamics.html | uniq | tr '\n' ' ')
[[ $order == '<h2 id="medians" <h2 id="exponents" <figure id'*'<h2 id="tables" <details id="sentences" ' ]] || fail "the page's order: $order"
for figure in local-exponent finite-time-exponent spectrum token-distance token-cosine participation rank-collapse start-distance \
  plane-run plane-shared.yaml training-exponent training-dimension; do
  [ -s page/figures/$figure.svg ] || fail "no figure $figure: $(ls page/figures)"
  ! grep -q '[" ,]-\?\(nan\|inf\)' page/figures/$figure.svg || fail "$figure has numbers that are none"
done
if command -v xmllint >/dev/null; then
  xmllint --noout page/dynamics.html page/figures/*.svg || fail "not well-formed"
fi

# An echo state network: driven, free, and over its spectral radius.
dynamics esn.yaml --input three --exponents 2
grep -q "^reservoir .*spectral radius" printed.txt || fail "no reservoir: $(cat printed.txt)"
dynamics esn.yaml --drive free --iterations 30 --exponents 2 --starts 2
[ "$(grep -c '^line [0-9]' printed.txt)" -eq 2 ] || fail "not two starts: $(cat printed.txt)"
dynamics esn.yaml --input three --exponents 1 --spectral-radii 0.5,1.5 --leak-rates 1 --delays 5 --samples 200 --output esn --json
[ "$(grep -c '"kind":"radius"' printed.txt)" -eq 2 ] || fail "not a line for each radius: $(cat printed.txt)"
[ "$(wc -l <esn/radii.csv)" -eq 3 ] && [ -s esn/figures/radius-exponent.svg ] && [ -s esn/figures/radius-memory.svg ] || fail "radii: $(ls -R esn)"

# Bad input.
refuse 2 "shares no period" "$TARN" dynamics layers.yaml --input three --iterations 50
refuse 2 "exponents" "$TARN" dynamics esn.yaml --input three --exponents 21
refuse 2 "input FILE is missing" "$TARN" dynamics shared.yaml
refuse 2 "only an echo state network" "$TARN" dynamics shared.yaml --input three --spectral-radii 0.9
refuse 2 "spectral-radii must be numbers from 0" "$TARN" dynamics esn.yaml --input three --spectral-radii 0.5,x
refuse 2 "given twice" "$TARN" dynamics shared.yaml shared.yaml --input three
refuse 2 "standard input can be read once" "$TARN" dynamics shared.yaml layers.yaml --input -
refuse 2 "precision is double or fp32" "$TARN" dynamics shared.yaml --input three --precision bf16
refuse 1 "nowhere: cannot read" "$TARN" dynamics shared.yaml --input nowhere
refuse 2 "run directory" "$TARN" dynamics shared.yaml --input three --iterations 3 --over-training
: >empty
refuse 2 "no sentence" "$TARN" dynamics shared.yaml --input empty
touch blocked
refuse 1 "blocked is no folder" "$TARN" dynamics shared.yaml --input nowhere --iterations 3 --output blocked
refuse 2 "output must name a folder" "$TARN" dynamics shared.yaml --input nowhere --output ""

refuse 2 "dynamics: layers.yaml: .*shares no period" "$TARN" plan layers.yaml --set "$followed"
refuse 2 "dynamics: layers.yaml: .*shares no period" "$TARN" train layers.yaml --run never --set "$followed"
refuse 2 "no exponents are computed without dynamics.input" "$TARN" plan layers.yaml --set dynamics.every=3
[ ! -e never ] || fail "a refused training has made its folder"

# Options without effect.
refuse 2 "title is that of the page" "$TARN" dynamics shared.yaml --input three --title T
refuse 2 "delays is of the memory capacity" "$TARN" dynamics esn.yaml --input three --delays 5
refuse 2 "samples is of the memory capacity" "$TARN" dynamics esn.yaml --input three --samples 200
refuse 2 "starts is of a recurrence with --drive free" "$TARN" dynamics esn.yaml --input three --starts 2
refuse 2 "input is not read by a recurrence with --drive free" "$TARN" dynamics esn.yaml --input three --drive free
exit 0
