# A file given in place of another kind is identified, in every direction, and the message says what is expected.
set -u
. "$(dirname "$0")/../tiny_run.sh"

"$TARN" train model.yaml --run runs/a --set train.max_updates=20 >train.txt 2>&1 || fail "train: $(cat train.txt)"
printf 'base: model.yaml\nbaseline: x\nvariants:\n  x: {}\nseeds: [1]\n' >sweep.yaml
mkdir empty seeds seeds/seed-1 swept hf
echo '{}' >swept/sweep.json
printf '{"model_type": "gpt2",\n"n_embd": 4}\n' >hf/config.json
gzip -c model.yaml >model.yaml.gz
checkpoint=runs/a/checkpoint_last.safetensors
"$TARN" series generate mackey-glass --rows 60 --output mg.csv >/dev/null
"$TARN" series train mg.csv --rows 40 --warmup 5 --units 8 --output esn >/dev/null || fail "series train"
transformers=$TARN_SOURCE_DIR/tests/golden/bert_model/bert

is_told() {  # FILE WHAT-IT-IS TEXT COMMAND...
  local file=$1 what=$2 wanted=$3
  shift 3
  "$@" >out.txt 2>error.txt </dev/null && fail "$* goes well"
  [ "$(wc -l <error.txt)" -eq 1 ] || fail "$*: not one line: $(cat error.txt)"
  grep -qF -- "$file: this is $what; $wanted" error.txt || fail "$*: no \"$file: this is $what; $wanted\": $(cat error.txt)"
}

model="a model is a run directory of tarn train, or a checkpoint in it (.safetensors)"
as_model() {
  is_told "$1" "$2" "$model" "$TARN" translate "$1"
  case $2 in "a shard" | "a vocabulary"*) ;; *) is_told "$1" "$2" "$model" "$TARN" inspect "$1" ;; esac  # it takes these
  is_told "$1" "$2" "$model" "$TARN" export "$1" x --dense
}
as_model train.tarn "a shard"
as_model vocab "a vocabulary"
as_model model.yaml "a configuration"
as_model sweep.yaml "the description of a sweep"
as_model corpus/train.de "text"
as_model hf/config.json "a config.json of Hugging Face"
as_model empty "a folder without a run"
as_model esn "a model of tarn series"
as_model "$transformers" "a model of Hugging Face"
as_model "$transformers/model.safetensors" "a file of weights of Hugging Face"
as_model swept "the folder of a sweep"
as_model model.yaml.gz "a compressed file"
refuse 1 "seeds: a folder of runs with several seeds; name one of them, such as seeds/seed-1" "$TARN" translate seeds

vocab="a vocabulary is a file that tarn vocab makes"
as_vocab() {
  is_told "$1" "$2" "$vocab" "$TARN" encode --vocab "$1"
  is_told "$1" "$2" "$vocab" "$TARN" prepare --vocab "$1" --text corpus/train.de --output x
  is_told "$1" "$2" "$vocab" "$TARN" train model.yaml --run x --set data.vocab="$1"
}
as_vocab train.tarn "a shard"
as_vocab $checkpoint "a checkpoint"
as_vocab model.yaml "a configuration"
as_vocab corpus/train.de "text"
as_vocab runs/a "a run directory"
refuse 1 "nowhere: there is no such file; tarn vocab makes vocabularies (--output nowhere)" "$TARN" encode --vocab nowhere
refuse 1 "empty: there is neither vocab.json nor encoder.json in this folder" "$TARN" encode --vocab empty

config="a configuration is a YAML file with kinds, and encoder or decoder, or a run directory"
as_config() {
  is_told "$1" "$2" "$config" "$TARN" plan "$1"
  is_told "$1" "$2" "$config" "$TARN" train "$1" --run x
}
as_config train.tarn "a shard"
as_config $checkpoint "a checkpoint"
as_config vocab "a vocabulary"
as_config sweep.yaml "the description of a sweep"
as_config hf/config.json "a config.json of Hugging Face"
as_config empty "a folder without a run"
as_config swept "the folder of a sweep"
is_told model.yaml "a configuration" "the description of a sweep is a YAML file with base and variants" \
  "$TARN" sweep model.yaml --output x
is_told train.tarn "a shard" "the description of a sweep" "$TARN" sweep train.tarn --output x

shard="a shard is a file NAME.tarn that tarn prepare makes"
as_shard() { is_told "$1" "$2" "$shard" "$TARN" train model.yaml --run x --set data.train="$1"; }
as_shard corpus/train.de "text"
as_shard vocab "a vocabulary"
as_shard $checkpoint "a checkpoint"
as_shard model.yaml "a configuration"
is_told corpus/train.de text "$shard" "$TARN" plan model.yaml --set data.train=corpus/train.de
cp vocab vocab.tarn
as_shard vocab.tarn "a vocabulary"
refuse 1 "nowhere.tarn: there is no such file; tarn prepare makes shards (--output nowhere)" \
  "$TARN" train model.yaml --run x --set data.train=nowhere
"$TARN" plan model.yaml --set data.train=nowhere --vocab-size 400 >out.txt 2>error.txt || fail "a plan without data: $(cat error.txt)"

run="a run directory is made by tarn train and has a config.yaml"
is_told $checkpoint "a checkpoint" "$run" "$TARN" compare $checkpoint
is_told $checkpoint "a checkpoint" "$run" "$TARN" train --resume $checkpoint
is_told train.tarn "a shard" "$run" "$TARN" test train.tarn --source corpus/valid.de --reference corpus/valid.en
is_told seeds "a folder of runs with several seeds" "$run" "$TARN" train --resume seeds
is_told $checkpoint "a checkpoint" "a text is a file of lines in UTF-8" "$TARN" prepare --vocab vocab --text $checkpoint --output x
is_told train.tarn "a shard" "a text is a file of lines in UTF-8" "$TARN" translate runs/a --input train.tarn

series="a model of series is a file that tarn series train makes"
is_told $checkpoint "a checkpoint" "$series" "$TARN" series forecast $checkpoint mg.csv
is_told mg.csv "text" "$series" "$TARN" series forecast mg.csv esn
folder="a model of Hugging Face is a folder with config.json and model.safetensors"
is_told runs/a "a run directory" "$folder" "$TARN" import-gpt2 runs/a --output x
is_told $checkpoint "a checkpoint" "$folder" "$TARN" import-bert $checkpoint --output x
refuse 1 "empty/config.json: cannot read" "$TARN" import-bert empty --output x

# A damaged file of the right kind keeps its own message.
head -c 300 train.tarn >cut.tarn
refuse 1 "cut.tarn: damaged shard" "$TARN" train model.yaml --run x --set data.train=cut
head -c 300 $checkpoint >cut.safetensors
refuse 1 "cut.safetensors: .*cut off" "$TARN" translate cut.safetensors

# The message names the complete file of a shard.
"$TARN" vocab --type whitespace --size 50 --output other corpus/train.en >/dev/null
refuse 1 "^tarn train: train.tarn: its source was prepared with another vocabulary" \
  "$TARN" train model.yaml --run x --set data.vocab=other

# The plan of a run is that of its configuration.
"$TARN" plan runs/a --json >of_run.json || fail "plan of a run"
"$TARN" plan runs/a/config.yaml --json >of_file.json || fail "plan of a file"
cmp of_run.json of_file.json || fail "the plan of a run differs from that of its configuration"

# 1e3 is 1000, in files, overrides and options.
sed 's/max_tokens: 500/max_tokens: 5e2/' model.yaml >power.yaml
"$TARN" plan power.yaml --json >power.json 2>error.txt || fail "5e2: $(cat error.txt)"
"$TARN" plan model.yaml --json >plain.json || fail "plan"
cmp power.json plain.json || fail "5e2 is not 500"
"$TARN" plan model.yaml --set train.max_tokens=2e3 --vocab-size 4e2 --json >power.json || fail "options"
"$TARN" plan model.yaml --set train.max_tokens=2000 --vocab-size 400 --json >plain.json || fail "options"
cmp power.json plain.json || fail "2e3 is not 2000"
refuse 2 "--vocab-size takes a whole number, not \"1.5e0\"" "$TARN" plan model.yaml --vocab-size 1.5e0
refuse 2 "--vocab-size takes a whole number, not \"1e99\"" "$TARN" plan model.yaml --vocab-size 1e99
refuse 2 "train.max_tokens: \"1.5e0\" is not an integer" "$TARN" plan model.yaml --set train.max_tokens=1.5e0
[ ! -e x ] || fail "something is made of a refused file"
exit 0
