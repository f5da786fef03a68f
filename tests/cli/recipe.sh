# tarn recipe: the list, what a recipe shows, a recipe of one's own from data to score, killed and resumed, and refusals.
set -u
. "$(dirname "$0")/../helpers.sh"

# --- the built-in recipes: each can be opened, planned and shown, and its text is a recipe itself
"$TARN" recipe list >list.txt || fail "list"
for name in multi30k tatoeba wmt-like babylm blimp sst2 char-lm esn-series; do
  grep -q "^$name " list.txt || fail "$name is not listed: $(cat list.txt)"
done
grep -q '^sst2 .*accuracy *0.8162 ± 0.0048 (3 seeds)' list.txt && grep -q '^multi30k .*test BLEU *42.26 ± 0.09 (3 seeds) *7.0 M$' list.txt || fail "the list: $(cat list.txt)"
grep -q '^wmt-like .*not measured' list.txt || fail "a score that nobody measured: $(cat list.txt)"
"$TARN" recipe list --json | grep -q '{"recipes":\[{"name":"babylm",.*"parameters":53' || fail "list --json"
"$TARN" recipe show multi30k >copy.yaml || fail "show"
grep -q '^#   tarn vocab --type bpe --size 10000 --output data/multi30k/vocab.model inputs/train.de inputs/train.en$' copy.yaml || fail "no commands: $(cat copy.yaml)"
sed -i '/^expected:/,/^  from:/d' copy.yaml
printf 'expected: { mean: 42.38, deviation: 0.03, seeds: 3, from: a test }\n' >>copy.yaml
"$TARN" recipe show ./copy.yaml | grep -q '^# test BLEU expected: 42.38 ± 0.03 (3 seeds)' || fail "what is shown is no recipe"
[ "$("$TARN" recipe show ./copy.yaml | tail -n 1)" = '# The description: tarn recipe show ./copy.yaml --model' ] || fail "the path is not shown"
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
"$TARN" recipe run ./copy.yaml --data corpus --output never --dry-run >out.txt || fail "dry run"
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
jq -e '(.values | keys == ["1", "2"]) and .within == false' out.json >/dev/null || fail "more seeds: $(cat out.json)"
cmp <(jq -S . out.json) <(jq -S . moved/score.json) || fail "score.json and --json differ"

# Data of another time are read again: with the same bytes they are the same, with others they are not, as long as they may be.
touch -d '2020-01-01' corpus/*
own --output moved --seeds 2 --quiet || fail "the same data with another time"
cp corpus/train.de kept.de
tr a-m b-n <kept.de >corpus/train.de
refuse 2 'from other data' own --output moved --seeds 2 --quiet
cp kept.de corpus/train.de

# The same data elsewhere, also with another time, are the same: nothing is done again, and the links lead there.
mkdir elsewhere && mv corpus elsewhere/corpus && touch -d '2021-01-01' elsewhere/corpus/*
there() { "$TARN" recipe run ./own.yaml --data elsewhere/corpus --output moved "$@"; }
stamp=$(stat -c %y%i moved/data/*.tarn moved/runs/own/seed-*/*.safetensors | sort)
there --seeds 2 --dry-run >out.txt || fail "dry run of moved data: $(cat out.txt)"
there --seeds 2 >out.txt || fail "moved data: $(cat out.txt)"
[ "$(grep -c 'done before' out.txt)" -eq 3 ] || fail "steps are done again: $(cat out.txt)"
[ "$(readlink moved/inputs/train.de)" = "$PWD/elsewhere/corpus/train.de" ] || fail "the links: $(ls -lR moved/inputs)"
[ "$(ls -A moved/inputs)" = "$(printf '%s\n' train.de train.en valid.de valid.en)" ] || fail "other links: $(ls -A moved/inputs)"
[ "$(stat -c %y%i moved/data/*.tarn moved/runs/own/seed-*/*.safetensors | sort)" = "$stamp" ] || fail "files were made again"
# Other bytes of the same size and time are other data, if they are elsewhere.
cp -a elsewhere/corpus imitated && tr a-m b-n <kept.de >imitated/train.de && touch -r elsewhere/corpus/train.de imitated/train.de
refuse 2 'from other data' "$TARN" recipe run ./own.yaml --data imitated --output moved --seeds 2 --quiet
# With a test and a validation that read the data: only prepared, before the first run; and with more seeds.
sed -e '/^set:/d; s/^seeds:.*/seeds: 1/; s/^score:.*/score: test.bleu/; /^expected/d' own.yaml >tested.yaml
printf 'set: { data.valid_reference: $valid.en, train.max_updates: 10 }\ntest: { source: $valid.de, reference: $valid.en, beam: 1 }\n' >>tested.yaml
tested() { "$TARN" recipe run ./tested.yaml --output tested "$@"; }
tested --data elsewhere/corpus --quiet || fail "a recipe with a test"
mv elsewhere/corpus corpus
mv tested/runs kept.runs
tested --data corpus --dry-run >out.txt || fail "prepared, no run, moved data: $(cat out.txt)"
mv kept.runs tested/runs
tested --data corpus --dry-run --seeds 2 >out.txt || fail "more seeds, moved data: $(cat out.txt)"
tested --data corpus --seeds 2 >out.txt || fail "more seeds, moved data: $(cat out.txt)"
grep -q '^test BLEU: .* over 2 seeds' out.txt || fail "more seeds: $(cat out.txt)"
# References are looked for above the run, also in the folder of another experiment.
mkdir -p third/inputs && cp corpus/valid.de third/inputs/valid.en
(cd third && "$TARN" compare ../tested/runs >out.txt) || fail "compare in another folder: $(cat third/out.txt)"
# What is not a link is no link of ours.
cp -rL tested copied
refuse 2 'inputs/train.de is not a link to the data: move inputs elsewhere' "$TARN" recipe run ./tested.yaml --output copied --data corpus --seeds 2 --quiet
mv copied/inputs own.inputs && ln -s ../own.inputs copied/inputs && ln -s /nowhere own.inputs/other
refuse 2 'inputs is not the folder of links' "$TARN" recipe run ./tested.yaml --output copied --data corpus --seeds 2 --quiet
rm copied/inputs
"$TARN" recipe run ./tested.yaml --output copied --data own.inputs --seeds 2 --quiet || fail "data that were copied with the folder"
[ -L own.inputs/other ] || fail "a file outside the folder was removed"

# A folder that names its data by their paths, as those of earlier versions do, is told from one of other data.
cp -r whole earlier && jq '.data |= with_entries(.key |= "/somewhere/" + .)' whole/prepared.json >earlier/prepared.json
refuse 2 'made by an earlier version of tarn' own --output earlier --quiet

# Until a step is done, other data may be given; a link of the first attempt does not stay in a folder that a step may read whole.
mkdir kept second && for name in x y z; do echo $name >kept/$name.tsv; done && echo y >second/y.tsv
cat >links.yaml <<'END'
task: none
summary: a test
data: { text: "*.tsv" }
prepare: [vocab: { type: whitespace, size: 10, output: data/a, files: $text }]
each_seed: [series forecast: { json: "{seed}.json", files: [data/a, data/b] }]
score: nrmse
END
"$TARN" recipe run ./links.yaml --data kept --output linked --quiet 2>/dev/null && fail "no series"
[ "$(ls linked/inputs)" = "$(printf '%s\n' x.tsv y.tsv z.tsv)" ] || fail "links: $(ls linked/inputs)"
jq '.steps = []' linked/prepared.json >less && mv less linked/prepared.json
"$TARN" recipe run ./links.yaml --data second --output linked --quiet 2>/dev/null && fail "no series"
[ "$(ls linked/inputs)" = y.tsv ] || fail "links: $(ls linked/inputs)"
[ "$(readlink linked/inputs/y.tsv)" = "$PWD/second/y.tsv" ] || fail "links: $(ls -l linked/inputs)"

# Other data, other steps and other settings are not mixed into a folder.
cp -r corpus changed
echo 'Ein Hund.' >>changed/train.de
refuse 2 'from other data' "$TARN" recipe run ./own.yaml --data changed --output whole --quiet
sed 's/size: 400/size: 300/' own.yaml >other.yaml
refuse 2 'by other steps (from step 1 on)' "$TARN" recipe run ./other.yaml --data corpus --output whole --quiet
refuse 2 'different settings must not be mixed' own --output whole --set train.lr=0.1 --quiet
grep -q 'train.lr' whole/sweep.yaml && fail "a refused run rewrote sweep.yaml"
refuse 2 'the seeds 1 to 2: give as many (--seeds 2) or more' own --output moved --quiet

# A folder that is somebody's own, data that would be replaced, changes that cannot be: nothing is made or replaced.
mkdir home && echo mine >home/notes
refuse 2 'other files (notes)' own --output home --quiet
[ "$(ls -A home)" = notes ] || fail "a folder that is refused was changed: $(ls -A home)"
mkdir -p taken/data && echo '{"steps": [], "data": {}}' >taken/prepared.json
seq 9 >taken/data/all.txt
cat >half.yaml <<'END'
task: none
summary: a test
data: { text: all.txt }
prepare: [split: { every: 2, output: data/all.txt, rest: data/rest, files: $text }]
each_seed: [series forecast: { json: "{seed}.json", files: [data/a, data/b] }]
score: nrmse
END
refuse 2 'data.text: .*/taken/data/all.txt would be replaced by data/all.txt' "$TARN" recipe run ./half.yaml --data taken/data --output taken
seq 9 | cmp - taken/data/all.txt || fail "data were replaced"
refuse 2 'train.lr is changed twice' own --output never --set train.lr=1 --set train.lr=2
refuse 2 'train.lrr' own --output never --json --set train.lrr=1
refuse 2 'kinds.L.heads' own --output never --quiet --dry-run --set kinds.L.heads=3

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
bad 'bad.yaml:5: data.train.en: "./train.en" has a part that is hidden' 's|train.en: train.en|train.en: ./train.en|'
bad 'bad.yaml:13: model: "../tiny.yaml" is no path below' 's|model: tiny|model: ../tiny|'
sed 's|model: tiny|model: gone|' own.yaml >bad.yaml
refuse 1 'bad.yaml:13: model: gone.yaml: cannot read' "$TARN" recipe show bad.yaml
bad 'bad.yaml:16: unknown measure in score "nl"; did you mean "nll"?' 's/valid.nll/valid.nl/'
bad 'bad.yaml:16: score: expected a measure of the test or the validation' 's/valid.nll/nll/'
bad 'bad.yaml:17: expected.from: say where the figures come from' 's/, from: nowhere//'
bad 'bad.yaml:17: expected: two or more seeds have a deviation' 's/scores: .*,/mean: 5, seeds: 3,/'
bad 'leave them out' 's/, from: nowhere/, seeds: 2&/'
bad 'score is missing' '/^score/d'
bad 'bad.yaml:16: score: test.bleu needs the key test' 's/valid.nll/test.bleu/'
bad 'bad.yaml:9: output: "data/.vocab" is no path for a step' 's|data/vocab, files|data/.vocab, files|'
bad 'bad.yaml:9: output: "runs/vocab" is no path for a step' 's|data/vocab, files|runs/vocab, files|'
bad '"data/train" is written twice' 's|output: data/valid|output: data/train|'
bad 'data.train: "/etc/passwd" is not below the output folder; a file of data is named by' 's|train.clip_norm: 1|data.train: /etc/passwd|'
bad 'bad.yaml:2: a text of a recipe is one line' 's|a test|"a \\e[2J test"|'
bad 'in its sweep.yaml: .*unknown key in test "sorce"' 's|^score|test: { sorce: a }\nscore|'
# What an import reads beside its file is named too, or another vocabulary would be made without a word.
mkdir bert && printf '[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nein\n' >bert/vocab.txt && echo '{"do_lower_case": false}' >bert/tokenizer_config.json
sed -e 's|^  train.de:.*|  train.de: vocab.txt|; s|^  - vocab:.*|  - vocab: { import-wordpiece: $train.de, output: data/vocab }|' own.yaml >bad.yaml
refuse 2 'bad.yaml:9: import-wordpiece: beside $train.de is tokenizer_config.json' "$TARN" recipe show bad.yaml --data bert
sed -i 's|\$train.de, output: data/vocab|$train.de/, output: data/vocab|' bad.yaml
refuse 2 'bad.yaml:9: import-wordpiece: beside $train.de/ is tokenizer_config.json' "$TARN" recipe show bad.yaml --data bert
sed 's|^  train.en:.*|  train.en: tokenizer_config.json|' bad.yaml >named.yaml
"$TARN" recipe show named.yaml --data bert >out.txt || fail "settings that are named"
cp own.yaml null.yaml && "$TARN" recipe show null.yaml >out.txt || fail "a recipe called null"
sed 's/: "runs.{seed}.json"/: runs\/out.json/' series.yaml >bad.yaml
refuse 2 'bad.yaml:7: json: "runs/out.json" needs {seed}' "$TARN" recipe show bad.yaml
sed 's/ json: "runs.{seed}.json",//' series.yaml >bad.yaml
refuse 2 'bad.yaml:5: each_seed: the last step has json: FILE' "$TARN" recipe show bad.yaml
sed 's/{seed}.json"/{seed}.js"/' series.yaml >other.yaml  # which only changes where a step's output goes
refuse 2 'by other steps (from step 3 on)' "$TARN" recipe run ./other.yaml --output series --quiet

# The first folder that has any of the choices is taken; a folder is no file; one that is missing is named. Without the
# size of the vocabulary nothing is predicted; and a prepared folder is only that of its own recipe.
mkdir first && mkdir first/missing.de && cp corpus/train.de first/train.de && cp corpus/train.de corpus/missing.de
sed '/^vocabulary/d' own.yaml >plain.yaml
"$TARN" recipe run ./plain.yaml --data first --data corpus --output never --dry-run >out.txt || fail "dry run: $(cat out.txt)"
grep -q "^  train.de     $PWD/first/train.de$" out.txt || fail "which file is taken: $(cat out.txt)"
grep -q 'known when the data are prepared; the recipe has no key vocabulary' out.txt || fail "no vocabulary: $(cat out.txt)"
mkdir two && touch two/a.txt two/b.txt
refuse 2 'split: expected 1 of its arguments, not 2' "$TARN" recipe show char-lm --data two
refuse 2 'there is no folder nowhere' "$TARN" recipe show multi30k --data nowhere
(cd whole && "$TARN" recipe list >../out.txt && "$TARN" recipe run multi30k --data ../corpus --output ../never --dry-run >>../out.txt) || fail "in a prepared folder"
cmp list.txt <(head -n "$(wc -l <list.txt)" out.txt) && grep -q 7.04 out.txt || fail "another folder's forecast: $(cat out.txt)"
"$TARN" recipe run ./own.yaml --data corpus --output never --dry-run --json | jq -e '.memory != null and .time != null' >/dev/null || fail "JSON of a dry run"
bad 'bad.yaml:9: vocab: expected its options' 's/- vocab: .*/- vocab: rm -rf/'
bad 'the preparation is for all seeds' 's/size: 400/size: "{seed}"/'
refuse 2 'there is no recipe "multi30"; did you mean multi30k?' "$TARN" recipe show multi30
refuse 1 'gone.yaml: cannot read' "$TARN" recipe show ./gone.yaml
refuse 2 '--output DIR is missing' "$TARN" recipe run multi30k --output ''
refuse 2 'the path is too long' own --output "$(printf 'x%.0s' $(seq 5000))"
refuse 2 'cannot be "lst"; did you mean list?' "$TARN" recipe lst
refuse 2 'a change is KEY=VALUE, not "x"' own --output x --set x
exit 0
