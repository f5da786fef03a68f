# tarn recipe: the list, what a recipe shows, a recipe of one's own from data to score, killed and resumed, and refusals.
set -u
. "$(dirname "$0")/../helpers.sh"

# --- the built-in recipes: each can be opened, planned and shown, and its text is a recipe itself
"$TARN" recipe list >list.txt || fail "list"
for name in multi30k tatoeba wmt-like babylm blimp sst2 char-lm esn-series; do
  grep -q "^$name " list.txt || fail "$name is not listed: $(cat list.txt)"
done
grep -q '^multi30k .*test BLEU *42.38 ± 0.03 (3 seeds) *7.0 M$' list.txt || fail "the list: $(cat list.txt)"
grep -q '^wmt-like .*not measured' list.txt || fail "a score that nobody measured: $(cat list.txt)"
"$TARN" recipe list --json | grep -q '{"recipes":\[{"name":"babylm",.*"parameters":53' || fail "list --json"
"$TARN" recipe show multi30k >copy.yaml || fail "show"
grep -q '^#   tarn vocab --type bpe --size 10000 --output data/multi30k/vocab.model DATA/train.de DATA/train.en$' copy.yaml || fail "no commands: $(cat copy.yaml)"
"$TARN" recipe show ./copy.yaml | grep -q '^# test BLEU expected: 42.38' || fail "what is shown is no recipe"
"$TARN" recipe show multi30k --model | cmp - "$TARN_SOURCE_DIR/examples/multi30k/full.yaml" || fail "show --model"
"$TARN" recipe show blimp --json | grep -q '"score":"test BLiMP"' || fail "show --json"

# --- data that are missing are named before anything is made
"$TARN" corpus --output corpus --sentences 300 --held-out 20 || fail "corpus"
mv corpus/valid.en corpus/valid.eng
"$TARN" recipe run multi30k --data corpus --output never >out.txt 2>error.txt && fail "data are missing"
grep -q "^  valid.en     missing: val.en, val.en.gz or valid.en; there is corpus/valid.eng$" out.txt || fail "what is missing: $(cat out.txt)"
grep -q "^  train.de     $PWD/corpus/train.de$" out.txt || fail "what is there: $(cat out.txt)"
[ "$(cat error.txt)" = "tarn recipe run: multi30k: 1 of 6 files missing; --data names the folder that holds them" ] || fail "$(cat error.txt)"
mv corpus/valid.eng corpus/valid.en
"$TARN" recipe run multi30k --data corpus --output never --dry-run >out.txt || fail "dry run"
grep -q '^expected test BLEU: .* of the mean of 1 run: 42.23 to 42.53$' out.txt || fail "no interval: $(cat out.txt)"
grep -q '^memory of a run: .* MB; 7.04 M parameters' out.txt && grep -q '^time: .* 3960 updates' out.txt || fail "no forecast: $(cat out.txt)"
[ ! -e never ] || fail "a dry run made a folder"

# --- one's own
cat >tiny.yaml <<'END'
model: { d_model: 32, embeddings: all }
encoder: { layers: (R1 L1)*2 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 64 }
  R: { mixer: attention, heads: 2, ffn: 64, frozen: yes }
data: { vocab: data/vocab, train: data/train, valid: data/valid }
train: { max_updates: 60, max_tokens: 500, lr: 0.005, warmup: 20, log_every: 5, save_every: 10, keep_last: 2 }
valid: { every: 20, max_sentences: 5, metric: nll }
END
cat >own.yaml <<'END'
task: translation
summary: a test
data:
  train.de: [missing.de, train.de]
  train.en: train.en
  valid.de: valid.de
  valid.en: valid.en
prepare:
  - vocab: { type: whitespace, size: 400, output: data/vocab, files: [$train.de, $train.en] }
  - prepare: { vocab: data/vocab, source: $train.de, target: $train.en, output: data/train }
  - prepare: { vocab: data/vocab, source: $valid.de, target: $valid.en, output: data/valid }
vocabulary: 400
model: tiny.yaml
set: { train.clip_norm: 1 }
threads: 1
score: valid.nll
expected: { scores: [50, 50.1], from: nowhere }
END
own() { "$TARN" recipe run ./own.yaml --data corpus "$@"; }
own --output whole --quiet || fail "run"
own --output whole >out.txt || fail "run again: $(cat out.txt)"
grep -q "^time: .* from the run's own log$" out.txt || fail "no forecast: $(cat out.txt)"
grep -q '^validation .*: [0-9.]*; expected: .* to .*: OUTSIDE$' out.txt || fail "the score: $(cat out.txt)"
jq -e '.within == false and (.values | keys == ["1"]) and .expected.mean == 50.05 and .changed == []' whole/score.json >/dev/null || fail "score.json: $(cat whole/score.json)"
log() { sed -E 's/"(time|seconds|tokens_per_second)":[0-9.eE+-]+,?//g' "$1/runs/own/seed-1/log.jsonl"; }

# Killed amid the preparation and amid the training, it ends as if it had not been.
"$TARN" recipe run ./own.yaml --data corpus --output killed --quiet >out.txt 2>&1 &
pid=$!
within_two_minutes grep -qs '"step":15' killed/runs/own/seed-1/log.jsonl || fail "no training: $(cat out.txt)"
kill -9 $pid
wait $pid 2>/dev/null
own --output killed >out.txt || fail "going on: $(cat out.txt)"
[ "$(grep -c 'done before' out.txt)" -eq 3 ] || fail "steps are done again: $(cat out.txt)"
diff <(log whole) <(log killed) || fail "a run that was killed differs"
cmp whole/score.json killed/score.json || fail "its score differs"
# A list of steps that ends earlier goes on there; more seeds add runs; a folder that was moved goes on too.
jq '.steps |= .[:1]' killed/prepared.json >less && mv less killed/prepared.json
mv killed moved
own --output moved --seeds 2 --json >out.json || fail "more seeds"
jq -e '(.values | length == 2) and .values[0].seed == 1 and .within == false' out.json >/dev/null || fail "more seeds: $(cat out.json)"

# Other data, other steps and other settings are not mixed into a folder.
cp -r corpus changed
echo 'Ein Hund.' >>changed/train.de
refuse 2 'from other data' "$TARN" recipe run ./own.yaml --data changed --output whole --quiet
sed 's/size: 400/size: 300/' own.yaml >other.yaml
refuse 2 'by other steps (from step 1 on)' "$TARN" recipe run ./other.yaml --data corpus --output whole --quiet
refuse 2 'different settings must not be mixed' own --output whole --set train.lr=0.1 --quiet

# A step that fails says why; so does a description.
sed 's/type: whitespace/type: morse/' own.yaml >other.yaml
refuse 1 'step 1, tarn vocab: .*morse' "$TARN" recipe run ./other.yaml --data corpus --output failed --quiet
refuse 2 'kinds.L.heads' own --output failed --set kinds.L.heads=3 --quiet

# --- steps in the place of a description
cat >series.yaml <<'END'
task: series
summary: a test
prepare:
  - series generate: { system: mackey-glass, rows: 600, output: data/mg.csv }
each_seed:
  - series train: { rows: 500, units: 30, seed: "{seed}", output: "runs/{seed}", files: data/mg.csv }
  - series forecast: { steps: 20, json: "runs/{seed}.json", files: ["runs/{seed}", data/mg.csv] }
score: nrmse
seeds: 2
END
"$TARN" recipe run ./series.yaml --output series >out.txt || fail "series: $(cat out.txt)"
grep -q '^nrmse: .* over 2 seeds .*not measured$' out.txt || fail "series: $(cat out.txt)"
jq -e --argjson one "$(jq .nrmse series/runs/1.json)" '.values["1"] == $one and .expected == null' series/score.json >/dev/null || fail "series: $(cat series/score.json)"
refuse 2 'no description whose keys could be set' "$TARN" recipe run ./series.yaml --output series --set units=3
refuse 2 'no description: it trains by its steps' "$TARN" recipe show ./series.yaml --model

[ -z "${TARN_SANITIZED:-}" ] || exit 0  # the fuzz target and the test of the library read bad recipes there
# --- refusals name file, line and key, and the nearest word; nothing leaves the folder
bad() {  # PATTERN SED: the recipe changed by sed is refused
  sed "$2" own.yaml >bad.yaml
  refuse 2 "$1" "$TARN" recipe show bad.yaml
}
bad 'bad.yaml:3: unknown key "dta"; did you mean "data"?' 's/^data:/dta:/'
bad 'bad.yaml:9: unknown step "vocabb"; did you mean "vocab"?' 's/- vocab:/- vocabb:/'
bad 'bad.yaml:10: unknown option in prepare "sorce"; did you mean "source"?' 's/source:/sorce:/'
bad 'bad.yaml:9: unknown name of data "train.d"; did you mean "train.de"?' 's/\[$train.de/[$train.d/'
bad 'bad.yaml:9: output: "../x" is no path below the output folder' 's|data/vocab, files|../x, files|'
bad 'bad.yaml:9: output: "/tmp/x" is no path below' 's|data/vocab, files|/tmp/x, files|'
bad 'bad.yaml:9: "/etc/passwd" is neither the $NAME of data nor' 's|\[$train.de|[/etc/passwd|'
bad 'bad.yaml:9: "--import-gpt2=/" is neither' 's|\[$train.de|[--import-gpt2=/|'
bad 'bad.yaml:5: data.train.en: "a/../../b" is no path below the data folder' 's|train.en: train.en|train.en: a/../../b|'
bad 'bad.yaml:13: model: "../tiny.yaml" is no path below' 's|model: tiny|model: ../tiny|'
sed 's|model: tiny|model: gone|' own.yaml >bad.yaml
refuse 1 'bad.yaml:13: model: gone.yaml: cannot read' "$TARN" recipe show bad.yaml
bad 'bad.yaml:16: unknown measure in score "nl"; did you mean "nll"?' 's/valid.nll/valid.nl/'
bad 'bad.yaml:16: score: expected a measure of the test or the validation' 's/valid.nll/nll/'
bad 'bad.yaml:17: expected.from: say where the figures come from' 's/, from: nowhere//'
bad 'bad.yaml:17: expected: two or more seeds have a deviation' 's/scores: .*,/mean: 5, seeds: 3,/'
bad 'score is missing' '/^score/d'
bad 'bad.yaml:9: vocab: expected its options' 's/- vocab: .*/- vocab: rm -rf/'
bad 'the preparation is for all seeds' 's/size: 400/size: "{seed}"/'
refuse 2 'there is no recipe "multi30"; did you mean multi30k?' "$TARN" recipe show multi30
refuse 1 'gone.yaml: cannot read' "$TARN" recipe show ./gone.yaml
refuse 2 '--output DIR is missing' "$TARN" recipe run multi30k
refuse 2 'list, show or run is expected, not lst' "$TARN" recipe lst
refuse 2 'a change is KEY=VALUE, not "x"' own --output x --set x
exit 0
