# The commands that write files, each with small inputs, for the fault tests. Source it in an empty folder, with the
# program in $TARN, the driver in $FAULT_DRIVER and the library in $FAULT_LIBRARY:  . "$(dirname "$0")/../fault_commands.sh"
. "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
export OMP_NUM_THREADS=1
# The fault library is loaded before the address sanitizer's and calls it; only a slow stack unwinder finds the caller.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:fast_unwind_on_malloc=0:malloc_context_size=12"

# Every command runs in its own folder that already contains older output, with the inputs in ../../../in.
fault_commands="corpus sentences vocab prepare train resume translate average export import-gpt2 import-bert import-marian prune test sweep
  report blimp choices generate series states dynamics"
# Other forms of these commands, and those that write to standard output.
fault_forms="vocab-bpe vocab-gpt2 vocab-wordpiece prepare-text prepare-table prepare-stream export-gpt2 export-bert export-marian export-ctranslate2
  vocab-tokenizer import-gguf export-llama export-gguf
  series-generate series-forecast train-cached sweep-reuse encode decode compare score classify test-labelled record recipe"

# Allocations of these libraries never fail: on failure GCC's and LLVM's OpenMP abort the process, and so do
# SentencePiece, from threads and destructors (terminate), the Fortran runtime and the dynamic linker.
FAULT_EXCLUDED="libgomp libomp libsentencepiece libstdc++ libgfortran ld-linux"

quiet() { "$@" >said.txt 2>&1 || fail "$*: $(cat said.txt)"; }

make_inputs() {
  mkdir in && cd in || fail "no folder for inputs"
  local golden="${TARN_SOURCE_DIR:?}/tests/golden" part
  quiet "$TARN" corpus --output c --sentences 40 --held-out 4
  quiet "$TARN" corpus --output old-c --sentences 30 --held-out 4 --seed 7
  quiet "$TARN" vocab --type whitespace --size 100 --output v c/train.de c/train.en
  quiet "$TARN" vocab --type bpe --size 60 --output old-v c/train.de c/train.en
  quiet "$TARN" vocab --type byte --output bytes
  for part in train valid; do quiet "$TARN" prepare --vocab v --source c/$part.de --target c/$part.en --output $part; done
  quiet "$TARN" prepare --vocab v --text c/valid.en --output text
  cat >model.yaml <<'YAML'
model: { d_model: 8, embeddings: all }
encoder: { layers: R L }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 1, ffn: 8 }
  R: { mixer: attention, heads: 1, ffn: 8, frozen: yes }
data: { vocab: ../../../in/v, train: ../../../in/train, valid: ../../../in/valid }
train: { max_updates: 6, max_tokens: 200, lr: 0.01, warmup: 2, log_every: 1, save_every: 2, keep_last: 2, average: 2, threads: 1 }
valid: { every: 3, max_sentences: 2, at_start: yes }
sets: { held: { data: ../../../in/valid, every: 4, max_sentences: 1 } }
translate: { beam: 1, max_len_b: 2 }
YAML
  cat >lm.yaml <<'YAML'
model: { d_model: 8, norm: pre, positions: learned, max_length: 40, embedding_scale: no, activation: gelu_tanh, dropout: 0 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 1, ffn: 8 }
data: { vocab: ../../../in/toy, train: ../../../in/toy-text }
train: { max_updates: 2, max_tokens: 200, lr: 0.01, warmup: 2, threads: 1 }
YAML
  sed 's/embeddings: all/embeddings: none, frozen_embeddings: encoder, dropout: 0/; s/^train: {/& cache_frozen: yes,/' model.yaml >cached.yaml
  cat >sweep.yaml <<'YAML'
base: model.yaml
baseline: one
seeds: [1]
parallel: 1
threads: 1
set: { train: { max_updates: 3, keep_last: 1, average: 1 }, valid: { every: 3 } }
test: { source: ../../../in/c/valid.de, reference: ../../../in/c/valid.en, beam: 1 }
variants:
  one: { encoder.layers: L }
  two: { encoder.layers: R L }
YAML
  cat >recipe.yaml <<'YAML'
task: series
summary: a test
data: { rows: mg.csv }
prepare:
  - series generate: { system: mackey-glass, rows: 120, output: data/mg.csv }
  - split: { every: 9, header: 1, output: data/few.csv, files: $rows }
each_seed:
  - series train: { rows: 80, warmup: 10, units: 8, seed: "{seed}", output: "runs/{seed}", files: data/mg.csv }
  - series forecast: { steps: 5, json: "runs/{seed}.json", files: ["runs/{seed}", data/mg.csv] }
score: nrmse
YAML
  quiet "$TARN" vocab --import-gpt2 "$golden/gpt2_toy" --output toy
  quiet "$TARN" prepare --vocab toy --text c/valid.en --output toy-text
  cp -r "$golden/gpt2_model/tied" gpt2
  quiet "$TARN" import-gpt2 gpt2 --vocab bytes --output lm-model
  quiet "$TARN" import "$golden/gguf/model.gguf" --output llama-model
  mkdir tokenizer && cp "$golden/tokenizers/pieces.json" tokenizer/tokenizer.json && echo '{"eos_token":"</s>"}' >tokenizer/tokenizer_config.json
  cp -r "$golden/bert_model/bert" bert
  cp -r "$golden/marian_model/swish" marian
  quiet "$TARN" import-marian marian --output marian-model
  quiet "$TARN" vocab --type byte --mask-symbols --output masked-bytes
  quiet "$TARN" import-bert bert --vocab masked-bytes --output bert-model
  printf 'ab\tx\nb c\ty\nabc\tx\n' >rows.tsv
  quiet "$TARN" prepare --vocab masked-bytes --table rows.tsv --text 1 --labels 2 --output rows
  cat >labels.yaml <<'YAML'
model: { task: classification, d_model: 8, positions: learned, max_length: 16, dropout: 0 }
encoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 1, ffn: 8 }
data: { vocab: ../../../in/masked-bytes, train: ../../../in/rows }
train: { max_updates: 2, max_tokens: 200, lr: 0.01, warmup: 1, threads: 1 }
YAML
  mkdir pairs
  printf '{"sentence_good": "%s", "sentence_bad": "%s"}\n' ab abc b abcd >pairs/half.jsonl
  printf '{"context": "%s", "choices": ["a", "b"], "answer": 0}\n' ab abc >questions
  quiet "$TARN" series generate mackey-glass --rows 120 --output mg.csv
  quiet "$TARN" series train mg.csv --rows 80 --warmup 10 --units 8 --output esn
  # Trainings and sweeps refer to their data relative to a working folder.
  mkdir -p ../w/in/now
  (cd ../w/in/now && quiet "$TARN" train ../../../in/model.yaml --run run --quiet &&
    quiet "$TARN" train ../../../in/model.yaml --run half --set train.max_updates=3 --quiet &&
    quiet "$TARN" train ../../../in/lm.yaml --run lm --quiet &&
    quiet "$TARN" train ../../../in/labels.yaml --run labels --quiet &&
    quiet "$TARN" sweep ../../../in/sweep.yaml --output sweep --quiet) || exit 1
  mv ../w/in/now/* . && rm -r ../w/in
  head -3 c/valid.de >three.de
  head -3 c/valid.en >three.en
  printf "ab\nabc d\n" >short
  cd .. || exit 1
}

# drive NAME [options of the driver] -- ARGUMENTS of the program. The initial files are in w/NAME/before.
drive() {
  local name=$1
  shift
  "$FAULT_DRIVER" --name "$name" --library "$FAULT_LIBRARY" --work "$PWD/w/$name" --excluded "$FAULT_EXCLUDED" \
    "${drive_options[@]}" "$@"
}

# fault_command NAME [options of the driver]: tests faults, kills or power losses for one command.
fault_command() {
  local name=$1 b="w/$1/before" i=../../../in
  shift
  drive_options=("$@")
  mkdir -p "$b"
  # The remains of a training can be loaded; it resumes, or starts if nothing had been written.
  local loads='for f in run/*.safetensors; do [ ! -e "$f" ] || "$TARN" inspect "$f" >/dev/null || exit 1; done'
  local again='if [ -e run/config.yaml ]; then "$TARN" train --resume run --quiet; else "$TARN" train ../../../in/CONFIG --run run --quiet; fi'
  case $name in
    corpus) cp -r in/old-c "$b/c" && drive corpus -- "$TARN" corpus --output c --sentences 40 --held-out 4 ;;
    sentences) cp in/c/valid.en "$b/s" && drive sentences -- "$TARN" sentences --output s $i/c/valid.en $i/c/test.en ;;
    vocab) cp in/old-v "$b/v" && drive vocab -- "$TARN" vocab --type whitespace --size 100 --output v $i/c/train.de $i/c/train.en ;;
    vocab-bpe) cp in/v "$b/v" && drive vocab-bpe -- "$TARN" vocab --type bpe --size 60 --threads 1 --output v $i/c/valid.de $i/c/valid.en ;;
    vocab-tokenizer) cp in/v "$b/v" && drive vocab-tokenizer -- "$TARN" vocab --import-tokenizer $i/tokenizer --output v ;;
    import-gguf) cp in/esn "$b/m" && drive import-gguf -- "$TARN" import "$TARN_SOURCE_DIR/tests/golden/gguf/model.gguf" --output m ;;
    export-llama) drive export-llama -- "$TARN" export --format llama $i/llama-model e ;;
    export-gguf) cp in/esn "$b/e" && drive export-gguf -- "$TARN" export --format gguf --type q8_0 $i/llama-model e ;;
    vocab-gpt2) cp in/v "$b/v" && drive vocab-gpt2 -- "$TARN" vocab --import-gpt2 "$TARN_SOURCE_DIR/tests/golden/gpt2_toy" --output v ;;
    vocab-wordpiece) cp in/v "$b/v" && drive vocab-wordpiece -- "$TARN" vocab --import-wordpiece "$TARN_SOURCE_DIR/tests/golden/wordpiece_toy" --output v ;;
    prepare) cp in/text.tarn "$b/p.tarn" && drive prepare -- "$TARN" prepare --vocab $i/v --source $i/c/valid.de --target $i/c/valid.en --output p ;;
    prepare-text) drive prepare-text -- "$TARN" prepare --vocab $i/old-v --text $i/c/valid.en --output folder/p ;;
    prepare-table) cp in/rows.tarn "$b/p.tarn" && drive prepare-table -- "$TARN" prepare --vocab $i/masked-bytes --table $i/rows.tsv --text 1 --labels 2 --output p ;;
    prepare-stream) cp in/rows.tarn "$b/p.tarn" && drive prepare-stream -- "$TARN" prepare --vocab $i/masked-bytes --text $i/c/valid.en --stream 24 --threads 1 --output p ;;
    train) drive train --loads "$loads" --again "${again/CONFIG/model.yaml}" -- "$TARN" train $i/model.yaml --run run --quiet ;;
    train-cached) drive train-cached --loads "$loads" --again "${again/CONFIG/cached.yaml}" -- "$TARN" train $i/cached.yaml --run run --quiet ;;
    resume)
      cp -r in/half "$b/run" && drive resume --drops "run/result.json run/checkpoint_average.safetensors" --loads "$loads" --again '"$TARN" train --resume run --set train.max_updates=6 --quiet' \
        -- "$TARN" train --resume run --set train.max_updates=6 --quiet ;;
    translate) echo old >"$b/t" && drive translate -- "$TARN" translate $i/run --threads 1 --input $i/three.de --output t ;;
    average)
      cp in/run/checkpoint_last.safetensors "$b/mean" &&
        drive average -- "$TARN" average --output mean $i/run/checkpoint_4.safetensors $i/run/checkpoint_6.safetensors ;;
    export) cp in/gpt2/model.safetensors "$b/e" && drive export -- "$TARN" export --dense $i/run e ;;
    export-gpt2) drive export-gpt2 -- "$TARN" export --format gpt2 $i/lm e ;;
    export-marian) drive export-marian -- "$TARN" export --format marian $i/marian-model e ;;
    export-ctranslate2) drive export-ctranslate2 -- "$TARN" export --format ctranslate2 $i/marian-model e ;;
    export-bert) drive export-bert -- "$TARN" export --format bert $i/bert-model e ;;
    import-bert) cp in/esn "$b/m" && drive import-bert -- "$TARN" import-bert $i/bert --vocab $i/masked-bytes --output m ;;
    import-marian) cp in/esn "$b/m" && drive import-marian -- "$TARN" import-marian $i/marian --output m ;;
    import-gpt2) cp in/esn "$b/m" && drive import-gpt2 -- "$TARN" import-gpt2 $i/gpt2 --vocab $i/bytes --output m ;;
    prune) cp in/esn "$b/m" && drive prune -- "$TARN" prune $i/run m --encoder-layers-to-keep 2 ;;
    test)
      cp -r in/run "$b/run" && rm "$b"/run/checkpoint_[0-9]* &&
        drive test -- "$TARN" test run --source $i/c/valid.de --reference $i/c/valid.en --threads 1 --quiet ;;
    test-labelled)
      cp -r in/labels "$b/run" && echo old >"$b/run/test.json" &&
        drive test-labelled -- "$TARN" test run --labelled $i/rows --threads 1 --quiet ;;
    sweep)
      drive sweep --only-first --loads 'for f in s/*/seed-*/*.safetensors; do [ ! -e "$f" ] || "$TARN" inspect "$f" >/dev/null || exit 1; done' \
        --again '"$TARN" sweep ../../../in/sweep.yaml --output s --quiet --retry-failed' -- "$TARN" sweep $i/sweep.yaml --output s --quiet ;;
    sweep-reuse)
      drive sweep-reuse --only-first --loads true --again '"$TARN" sweep ../../../in/sweep.yaml --output s --reuse ../../../in/sweep --quiet --retry-failed' \
        -- "$TARN" sweep $i/sweep.yaml --output s --reuse $i/sweep --quiet ;;
    report) drive report -- "$TARN" report $i/sweep --output r --resamples 40 ;;
    record) drive record -- "$TARN" record $i/sweep --output r ;;
    recipe)
      drive recipe --only-first --loads true --again '"$TARN" recipe run ../../../in/recipe.yaml --data ../../../in --output r --quiet' \
        -- "$TARN" recipe run $i/recipe.yaml --data $i --output r --quiet ;;
    blimp) echo old >"$b/j" && drive blimp -- "$TARN" blimp $i/lm-model $i/pairs --threads 1 --quiet --output j ;;
    choices) echo old >"$b/j" && drive choices -- "$TARN" choices $i/lm-model $i/questions --threads 1 --quiet --output j ;;
    generate) echo old >"$b/g" && drive generate -- "$TARN" generate $i/lm-model --prompt ab --top-k 5 --seed 1 --number 2 --max-tokens 4 --threads 1 --output g ;;
    series) cp in/v "$b/m" && drive series -- "$TARN" series train $i/mg.csv --rows 80 --warmup 10 --units 8 --output m ;;
    series-generate) drive series-generate -- "$TARN" series generate lorenz --rows 30 --output l ;;
    series-forecast) echo old >"$b/f" && drive series-forecast -- "$TARN" series forecast $i/esn $i/mg.csv --steps 5 --output f ;;
    encode) drive encode --input "$PWD/in/three.de" -- "$TARN" encode --vocab $i/old-v ;;
    decode) "$TARN" encode --vocab in/v <in/three.de >in/ids && drive decode --input "$PWD/in/ids" -- "$TARN" decode --vocab $i/v ;;
    compare) drive compare -- "$TARN" compare $i/sweep --json --resamples 40 ;;
    states)
      cp in/esn "$b/x" && drive states -- "$TARN" states $i/run encoder.1 'decoder.*attention' --input $i/three.de \
        --target $i/three.en --threads 1 --quiet --output x ;;
    dynamics) drive dynamics -- "$TARN" dynamics $i/run --input $i/three.de --exponents 2 --threads 1 --quiet --output d ;;
    score) drive score -- "$TARN" score $i/lm-model $i/short --threads 1 ;;
    classify) drive classify -- "$TARN" classify $i/labels $i/short --threads 1 ;;
    *) fail "no command \"$name\"; there are $fault_commands $fault_forms" ;;
  esac
}
