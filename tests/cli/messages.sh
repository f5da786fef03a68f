# Messages that once misled users, compared exactly, with the exit code; and after each one a case that succeeds:
# following a suggestion, or reading an undamaged file.
set -u
. "$(dirname "$0")/../tiny_run.sh"

# --- descriptions: suggestions are valid for the model
# ------------------------------------------------------------------
layers='{ layers: L }'
kinds='kinds: { L: { heads: 2, ffn: 8 } }'
# suggests LINE TEXT [SET]: the plan of this description is refused with this line; if the line asks "did you mean", the
# plan succeeds with that word in place of the first one quoted.
suggests() {
  local line=$1 text=$2 set=${3:-} wrong right
  printf '%s\n' "$text" "$kinds" >m.yaml
  exactly 2 "tarn plan: $line" "$TARN" plan m.yaml --vocab-size 50 ${set:+--set "$set"}
  right=$(sed -n 's/.*; did you mean "\([^"]*\)"?$/\1/p' error.txt)
  [ -n "$right" ] || return 0
  wrong=$(sed -n 's/^[^"]*"\([^"]*\)".*/\1/p' error.txt)
  sed -i "0,/\\b$wrong\\b/s//$right/" m.yaml
  exactly 0 '' "$TARN" plan m.yaml --vocab-size 50 ${set:+--set "${set/$wrong/$right}"}
}
embeddings='none, decoder, encoder_decoder, encoder_output, all'
suggests "m.yaml:1: model.embeddings: \"encoder\" is not one of $embeddings; did you mean \"encoder_output\"?" \
  "model: { embeddings: encoder }
encoder: $layers"
suggests "m.yaml:1: model.embeddings: \"encoder\" is not one of $embeddings; did you mean \"decoder\"?" \
  "model: { embeddings: encoder }
decoder: $layers"
suggests 'm.yaml:1: unknown section "maskng"; did you mean "masking"?' "maskng: { share: 0.2 }
encoder: $layers"
suggests 'm.yaml:1: unknown section "maskng"' "maskng: { share: 0.2 }
decoder: $layers"
suggests 'm.yaml:1: unknown key "segmnts" in model; did you mean "segments"?' "model: { segmnts: 2 }
encoder: $layers"
suggests 'm.yaml:1: unknown key "segmnts" in model' "model: { segmnts: 2 }
decoder: $layers"
suggests 'm.yaml:1: unknown key "share" in train; there is one in masking' "train: { share: 0.2 }
encoder: $layers"
suggests 'm.yaml:1: unknown key "share" in train' "train: { share: 0.2 }
decoder: $layers"
suggests 'm.yaml:1: unknown key "lrr" in train; did you mean "lr"?' "train: { lrr: 0.2 }
decoder: $layers"
suggests 'm.yaml:1: unknown key "lrr" in train' "train: { lr: 1, lrr: 0.2 }
decoder: $layers"
suggests '--set train.lrr=2: unknown key "lrr" in train; did you mean "lr"?' "train: { lr: 1 }
decoder: $layers" train.lrr=2
list=$(dirname "$0")/../../src/task/measure_list.h
metrics=$(sed -n 's/^ *X([A-Z0-9_]*, \([a-z0-9]*\),.*/\1/p' "$list" | paste -sd, | sed 's/,/, /g')
suggests "--set valid.metric=acuracy: valid.metric: \"acuracy\" is not one of $metrics; did you mean \"accuracy\"?" "encoder: $layers" valid.metric=acuracy
suggests "--set valid.metric=acuracy: valid.metric: \"acuracy\" is not one of $metrics" "decoder: $layers" valid.metric=acuracy
suggests 'm.yaml:1: decoder.layers: at character 1: kind "R" is not defined under kinds; did you mean "L"?' "decoder: { layers: R }"

# --- damaged logs
# ---------------------------------------------------------------------------------------------------------
"$TARN" train model.yaml --run whole --set train.max_updates=20 --set valid.every=10 --set valid.at_start=yes --set valid.bleu=no >train.txt 2>&1 ||
  fail "train: $(cat train.txt)"
size=$(wc -c <whole/log.jsonl)
lines=$(wc -l <whole/log.jsonl)
told() {  # RUN LINE: what compare and report say of a run
  exactly 1 "tarn compare: $2" "$TARN" compare "$1"
  exactly 1 "tarn report: $2" "$TARN" report "$1" --output page
  [ ! -e page ] || fail "there is a report of $1"
}
exactly 0 '' "$TARN" compare whole
exactly 0 '' "$TARN" report whole --output page
rm -r page
damaged() { rm -rf "$1"; cp -r whole "$1"; cat >"$1/log.jsonl"; }
damaged cut < <(head -c 40 whole/log.jsonl)
told cut "cut/log.jsonl is damaged, and no validation is left in it: it ends at byte 40, and ended at byte $size at update 20"
damaged emptied </dev/null
told emptied "emptied/log.jsonl is damaged, and no validation is left in it: it ends at byte 0, and ended at byte $size at update 20"
damaged zeros < <(cat whole/log.jsonl; head -c 500 /dev/zero)
told zeros "zeros/log.jsonl:$((lines + 1)): it is damaged at byte $size: a zero byte"
damaged within < <(head -c $((size - 5)) whole/log.jsonl; head -c 5 /dev/zero)
told within "within/log.jsonl:$lines: it is damaged at byte $((size - 5)): a zero byte"
damaged only < <(head -c "$size" /dev/zero)
told only "only/log.jsonl:1: it is damaged at byte 0: a zero byte"
damaged brace < <(sed '2s/}$/]/' whole/log.jsonl)
told brace "brace/log.jsonl:2: it is damaged at byte $(($(head -n 2 whole/log.jsonl | wc -c) - 1)): '}' expected near ']'"
damaged unvalidated </dev/null
sed -i 's/^  valid: .*/  valid:/' unvalidated/config.yaml
told unvalidated "unvalidated has no validation, so there is nothing to compare; give data.valid when training"

# --- clocks that go back
# --------------------------------------------------------------------------------------------------
cp -r whole back
sed -i '1s/"time":[0-9.]*/"time":-5/' back/log.jsonl
sed -i 's/"seconds": [0-9.]*/"seconds": -70/' back/result.json
exactly 0 'tarn: warning: back/result.json: "seconds" is negative, so it is not known: the clock of the machine went back
tarn: warning: back/log.jsonl:1: the clock of the machine went back (time -5 after 0), so times are not known until it is past that again' \
  "$TARN" compare back

# --- completion of names
# --------------------------------------------------------------------------------------------------
model="a model is a run directory of tarn train, or a checkpoint in it (.safetensors)"
cp train.tarn x1.tarn
exactly 0 'tarn inspect: there is no x1; this is x1.tarn' "$TARN" inspect x1
exactly 0 '' "$TARN" inspect x1.tarn
echo text >x1
exactly 1 "tarn inspect: x1: this is text; $model" "$TARN" inspect x1
exactly 0 'tarn: x1 is text; the shard x1.tarn is read' "$TARN" plan model.yaml --set data.train=x1
for file in valid.tarn vocab whole/checkpoint_last.safetensors; do
  cp $file x1
  exactly 0 '' "$TARN" inspect x1 --json
  cp out.txt found.txt
  exactly 0 '' "$TARN" inspect $file --json
  diff <(sed 's|"x1"|"F"|g' found.txt) <(sed "s|\"$file\"|\"F\"|g" out.txt) >difference.txt || fail "x1 is not $file: $(cat difference.txt)"
done
cp valid.tarn x1
exactly 0 '' "$TARN" plan model.yaml --set data.train=x1 --json
cp out.txt found.txt
exactly 0 '' "$TARN" plan model.yaml --set data.train=valid.tarn --json
cmp found.txt out.txt || fail "the plan is not of x1"

# --- standard output -----------------------------------------------------------------------------------------------------
if [ -w /dev/full ]; then
  full() { "$TARN" "$@" >/dev/full; }
  exactly 1 'tarn: cannot write to standard output: No space left on device' full --help
  exactly 1 'tarn: cannot write to standard output: No space left on device' full inspect whole
  exactly 1 'tarn translate: standard output: cannot write: No space left on device' full translate whole --input corpus/valid.de
fi
mkfifo pipe
exec 3<>pipe 4>pipe 3<&-
nobody() { "$TARN" "$@" >&4; }
for words in --help 'inspect whole' 'translate whole --input corpus/valid.de' 'compare whole'; do
  # shellcheck disable=SC2086
  exactly 141 '' nobody $words
done
exec 4>&-
exactly 2 '' "$TARN"
cp out.txt alone.txt
exactly 0 '' "$TARN" --help
cmp out.txt alone.txt || fail "tarn alone shows another page than tarn --help"

# --- states --------------------------------------------------------------------------------------------------------------
"$TARN" prepare --vocab vocab --text corpus/train.en --output text >/dev/null || fail "prepare --text"
sed '/^encoder/d; s/embeddings: all/embeddings: decoder/; s/train: train, valid: valid/train: text/' model.yaml >lm.yaml
"$TARN" train lm.yaml --run lm --set train.max_updates=1 >train.txt 2>&1 || fail "train: $(cat train.txt)"
de="--input corpus/valid.de"
well() { "$@" >out.txt 2>error.txt || fail "$*: $(cat error.txt)"; }
exactly 2 "tarn states: decoder.1 is of the decoder, which reads targets, and there are none; give them with --target" \
  "$TARN" states whole decoder.1 $de --output x
well "$TARN" states whole decoder.1 $de --target corpus/valid.en --output x
well "$TARN" states lm decoder.1 $de --output x
exactly 2 'tarn states: lm/checkpoint_last.safetensors: it has no "decoder.1.cross_attention", because no layer of a language model attends to an encoder' \
  "$TARN" states lm decoder.1.cross_attention $de --output y
best=whole/checkpoint_best.safetensors
exactly 2 "tarn states: $best: it has no \"encoder.1.cross_attention\"; the first layer that attends to the encoder is \"decoder.1.cross_attention\"" \
  "$TARN" states whole encoder.1.cross_attention $de --output y
well "$TARN" states whole decoder.1.cross_attention $de --target corpus/valid.en --output x
exactly 2 "tarn states: $best: it has no \"encoder.1.atention\"; did you mean \"encoder.1.attention\"?" "$TARN" states whole encoder.1.atention $de --output y
well "$TARN" states whole encoder.1.attention $de --output x
[ ! -e y ] || fail "a refused state was written"

# --- smoothing: default for translation only, and the best checkpoint is selected without it
# ------------------------------
chosen() {  # RUN SMOOTHING METRIC
  grep -qx "  label_smoothing: $2" "$1/config.yaml" && grep -qx "  metric: $3" "$1/config.yaml" ||
    fail "$1: $(grep 'label_smoothing\|metric' "$1/config.yaml")"
}
chosen whole 0.1 nll
chosen lm 0 nll
# Settings in a run directory are kept, also when the run is resumed.
"$TARN" train lm.yaml --run old --set train.max_updates=1 --set train.label_smoothing=0.1 --set valid.metric=loss --quiet || fail "train"
chosen old 0.1 loss
"$TARN" train --resume old --set train.max_updates=2 --quiet || fail "resume"
chosen old 0.1 loss
exit 0
