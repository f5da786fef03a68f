# The files of every past version (written by tests/versions/make.sh) can be read, with the same contents. The results
# of a version on another processor may differ in the last bits: numbers may differ by 0.002, far more than that and far
# less than another model. Tokens, shards and texts are exact.
set -u
. "$(dirname "$0")/../helpers.sh"
# near FILE FILE: the same texts, and numbers in the first column within 0.002.
near() { [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] && paste -d '\t' "$1" "$2" | awk -F '\t' '{ n = NF / 2; d = $1 - $(n + 1)
    if (d > 2e-3 || d < -2e-3) exit 1; for (i = 2; i <= n; i++) if ($i != $(n + i)) exit 1; seen++ } END { exit !seen }'; }

check_vocabularies() {
  local file
  for file in vocabularies/*.ids; do
    "$TARN" encode --vocab "${file%.ids}" --ids <vocabularies/text | cmp - "$file" || fail "$version: ${file%.ids}"
  done
}

check_shards() {
  "$TARN" prepare --vocab data/vocab --source data/train.de --target data/train.en --output again >/dev/null || fail "prepare"
  cmp again.tarn data/train.tarn || fail "$version: the shard has other bytes now"
  "$TARN" prepare --vocab data/vocab --text data/train.en --output again >/dev/null || fail "prepare"
  cmp again.tarn data/text.tarn || fail "$version: the shard of a text has other bytes now"
}

# Rows with labels and second sentences, packed rows and windows, which exist since the second version of the format,
# and their readers.
check_encoders() {
  local name
  rows() { "$TARN" prepare --vocab encoders/vocab "${@:2}" --output again >/dev/null && cmp again.tarn "encoders/$1.tarn" || fail "$version: the shard $1 has other bytes now"; }
  rows classes --table encoders/rows.tsv --text first --pair second --labels class
  rows values --table encoders/rows.tsv --text first --pair second --labels value --numbers
  rows packed --text data/train.en --pack 24
  rows stream --text data/train.en --stream 12
  for name in classes values; do
    "$TARN" classify encoders/$name.safetensors encoders/text --threads 1 >said.txt 2>error.txt || fail "$version: $name: $(cat error.txt)"
    awk -F '\t' '{ print $NF (NF > 1 ? "\t" $1 : "") }' said.txt >out.txt
    near "encoders/$name.expected" out.txt || fail "$version: $name: $(diff "encoders/$name.expected" out.txt)"
  done
}

check_models() {
  local file name
  for file in models/*.safetensors; do
    name=$(basename "$file" .safetensors)
    "$TARN" inspect "$file" >inspect.txt || fail "$version: inspect $name"
    if grep -q '^encoder:' inspect.txt; then
      "$TARN" translate "$file" --scores --beam 2 --threads 1 <data/test.de >out.txt 2>error.txt
    else
      "$TARN" score "$file" --threads 1 data/test.en >out.txt 2>error.txt
    fi || fail "$version: $name: $(cat error.txt)"
    near "models/expected/$name" out.txt || fail "$version: $name: $(diff "models/expected/$name" out.txt)"
    "$TARN" export --dense "$file" dense.safetensors >/dev/null || fail "$version: export of $name"
  done
  "$TARN" import-gpt2 gpt2 --vocab data/vocab --output imported.safetensors || fail "$version: import of gpt2"
  "$TARN" score imported.safetensors --threads 1 data/test.en >out.txt 2>error.txt || fail "$version: $(cat error.txt)"
  near models/expected/gpt2 out.txt || fail "$version: the model of GPT-2 as it is imported now"
}

# loss LINE: the loss of a line of a log, and its step.
loss() { sed -n 's/.*"step":\([0-9]*\),.*"loss":\([-0-9.e+]*\),"nll".*/\2\t\1/p'; }

check_resuming() {
  local run name
  for run in resume/*/; do
    name=$(basename "$run")
    "$TARN" train --resume "resume/$name" --set train.max_updates=11 --quiet 2>error.txt ||
      fail "$version: resume $name: $(cat error.txt)"
    sed -n '/"kind":"train","step":11,/p' "resume/$name/log.jsonl" | loss >out.txt
    loss <"resume/$name.expected" >expected.txt
    near expected.txt out.txt || fail "$version: update 11 of $name: $(cat out.txt)"
  done
}

# Recorded scores do not depend on the processor. Words and layout of a table may change.
check_reading_runs() {
  local bleu
  "$TARN" compare sweep --json 2>error.txt | jq . >compare.json || fail "$version: compare: $(cat error.txt)"
  grep -q '"half"' compare.json || fail "$version: the comparison does not name its configurations"
  "$TARN" report sweep --output page --resamples 50 2>error.txt >report.txt || fail "$version: report: $(cat error.txt)"
  for file in report.html report.md results.csv runs.csv; do [ -s "page/$file" ] || fail "$version: no $file"; done
  # One line per run: four runs with their test scores.
  [ "$(wc -l <page/runs.csv)" -eq 5 ] || fail "$version: runs: $(cat page/runs.csv)"
  for run in sweep/*/seed-*; do
    bleu=$(sed -n 's/.*"bleu": *\([0-9]*\.[0-9]\{4\}\).*/\1/p' "$run/test.json")
    [ -n "$bleu" ] && grep -qF "$bleu" page/runs.csv || fail "$version: $run: $bleu is not in runs.csv"
  done
}

check_series() {
  "$TARN" series forecast series/model.safetensors series/lorenz.csv --from 250 --steps 10 --output out.csv >/dev/null ||
    fail "$version: series"
  paste -d , series/forecast.csv out.csv | awk -F , 'NR > 1 { n = NF / 2
      for (i = 1; i <= n; i++) { d = $i - $(n + i); if (d > 1e-3 || d < -1e-3) exit 1 } seen++ } END { exit seen != 10 }' ||
    fail "$version: the forecast is another one"
}

count=0
for folder in "$TARN_SOURCE_DIR"/tests/versions/*/; do
  version=$(basename "$folder")
  cp -r "$folder" "$version" && cd "$version" || fail "copy of $version"
  check_vocabularies
  check_shards
  check_models
  check_encoders
  check_resuming
  check_reading_runs
  check_series
  "$TARN" blimp models/lstm.safetensors data/pairs --threads 1 --quiet >out.txt 2>error.txt || fail "$version: $(cat error.txt)"
  cd .. || exit 1
  count=$((count + 1))
done
[ $count -gt 0 ] || fail "there is no version"
exit 0
