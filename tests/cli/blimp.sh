# tarn blimp: the table, JSON, --output, truncation and replacement, bad input, a full disk.
set -u
. "$(dirname "$0")/../helpers.sh"
blimp() { "$TARN" blimp model "$@" --threads 1 2>progress.txt || fail "blimp $*: $(cat progress.txt)"; }

"$TARN" vocab --type byte --output bytes || fail "byte vocabulary"
"$TARN" import-gpt2 "$TARN_SOURCE_DIR/tests/golden/gpt2_model/tied" --vocab bytes --output model || fail "import"
# Every token of this model has a probability far below 1, so the shorter sentence is more likely.
mkdir pairs
pair() { printf '{"sentence_good": "%s", "sentence_bad": "%s"%s}\n' "$1" "$2" "${3:+, \"field\": \"$3\", \"linguistics_term\": \"t\"}"; }
{ pair ab abcdef order; pair b abcd order; pair abcdefg a order; pair abc abc order; } >pairs/half.jsonl
pair a abcdef length >pairs/right.jsonl
blimp pairs >table.txt
grep -Eq '^half +order +4 +50\.00 +15\.00 \.\. +85\.00$' table.txt || fail "half: $(cat table.txt)"
grep -Eq '^right +length +1 +100\.00 +20\.65 \.\. 100\.00$' table.txt || fail "right: $(cat table.txt)"
grep -Eq '^length +1 +100\.00 +20\.65 \.\. 100\.00$' table.txt || fail "a field: $(cat table.txt)"
# sqrt(35^2 + 79.35^2) / 2 below 75, sqrt(35^2 + 0^2) / 2 above.
grep -Eq '^overall +5 +75\.00 +31\.64 \.\. 92\.50$' table.txt || fail "overall: $(cat table.txt)"
blimp pairs --progress | cmp - table.txt || fail "--progress changes the table"
grep -Eq '^tarn: scoring minimal pairs  [0-9]+ %' progress.txt || fail "progress: $(cat progress.txt)"
blimp pairs --quiet --output result.json | cmp - table.txt || fail "--output changes the table"
[ "$(cat progress.txt)" = "pairs of two equal sentences, which count as wrong: 1" ] || fail "--quiet says: $(cat progress.txt)"
blimp pairs --quiet --json | cmp - result.json || fail "--json and --output differ"
tr -d ' \n' <result.json >flat.json
grep -q '"checkpoint":"model","overall":{"name":"overall","field":"","term":"","pairs":5,"right":3,"accuracy":0.75,"low":0.316' \
  flat.json || fail "overall: $(cat result.json)"
grep -q '"paradigms":\[{"name":"half","field":"order","term":"t","pairs":4,"right":2,"accuracy":0.5,' flat.json ||
  fail "paradigms: $(cat result.json)"
grep -q '\],"unknown":0,"truncated":0,"replaced":0,"equal":1}$' flat.json || fail "$(cat result.json)"

# Sentences that are too long for the model are reported by line number, also after empty lines.
mkdir hard
{ pair a ab; printf '\n'; pair a 0123456789abcdefghij; pair a "$(printf 'ab\xff')"; } >hard/x.jsonl
refuse 1 'hard/x.jsonl: line 3, its bad sentence: 21 tokens, and the model takes 16 .*overlong is refused here' "$TARN" blimp model hard --quiet
refuse 1 'hard/x.jsonl:4: invalid UTF-8' "$TARN" blimp model hard --quiet --overlong truncate --strict
blimp hard --quiet --overlong truncate --json >hard.json
grep -q "^truncated to the model's longest sentence: 1 sentence$" progress.txt || fail "truncated: $(cat progress.txt)"
grep -q '^invalid UTF-8 replaced in: 1 line$' progress.txt || fail "replaced: $(cat progress.txt)"
tr -d ' \n' <hard.json | grep -q '"unknown":0,"truncated":1,"replaced":1,"equal":0}$' || fail "$(cat hard.json)"
# tarn test does the same, and records the changes.
mkdir run
cp model run/checkpoint_last.safetensors
: >run/config.yaml
refuse 1 'hard/x.jsonl: line 3, its bad sentence: 21 tokens, and the model takes 16' "$TARN" test run --blimp hard
[ ! -e run/test.json ] || fail "a refused test leaves $(cat run/test.json)"
"$TARN" test run --blimp hard --overlong truncate >out.txt 2>told.txt || fail "tarn test: $(cat told.txt)"
{ grep '^truncated\|^invalid' progress.txt; echo "tarn test: took run/checkpoint_last.safetensors (the last; the run has no best checkpoint)"; } |
  cmp - told.txt || fail "tarn test tells $(cat told.txt)"
tr -d ' \n' <run/test.json | grep -q '"unknown":0,"truncated":1,"replaced":1,"equal":0,"seconds"' || fail "$(cat run/test.json)"

mkdir empty bad
refuse 2 'an argument is missing' "$TARN" blimp model
refuse 1 'empty: there is no file \*.jsonl' "$TARN" blimp model empty
refuse 1 'nowhere: cannot read the folder' "$TARN" blimp model nowhere
{ pair a ab; echo '{"sentence_good": "a"}'; } >bad/x.jsonl
refuse 1 'bad/x.jsonl:2: expected a text "sentence_bad"' "$TARN" blimp model bad
{ pair a ab order; pair a ab; } >bad/x.jsonl
refuse 1 'bad/x.jsonl:2: the field is "", but "order" in the pairs before it' "$TARN" blimp model bad
{ pair a ab; pair "" ab; } >bad/x.jsonl
refuse 1 'bad/x.jsonl:2: the text "sentence_good" is empty' "$TARN" blimp model bad
echo '{"sentence_good": "a"}' >bad/x.jsonl
[ -e result.json ] && refuse 1 'expected a text' "$TARN" blimp model bad --output result.json --quiet
tr -d ' \n' <result.json | cmp - flat.json || fail "a failure changes the file"
refuse 1 'no/such/folder' "$TARN" blimp model pairs --output no/such/folder/result.json
if [ -w /dev/full ]; then
  rm pairs/half.jsonl  # whose equal pair would be reported too
  # Enough pairs to exceed the buffer of standard output.
  for i in $(seq 60); do cp pairs/right.jsonl "pairs/right-$i.jsonl"; done
  for options in "" --json; do
    # shellcheck disable=SC2086
    refuse 1 'cannot write to standard output' \
      bash -c '"$TARN" blimp model pairs --quiet "$@" >/dev/full' - $options
  done
  refuse 1 '/dev/full: cannot write' "$TARN" blimp model pairs --quiet --output /dev/full
fi
exit 0
