#!/usr/bin/env bash
# Progress lines on a terminal: never wider than the window, even when it is resized, and without invalid numbers.
# Skipped without script(1), which creates a terminal.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
command -v script >/dev/null || { echo "no script(1): util-linux or bsdutils"; exit 77; }
export NO_COLOR=1

# in_window COLUMNS COMMAND: runs it on a terminal and leaves the successively overwritten pieces in lines.txt.
in_window() {
  script -qec "stty cols $1 rows 24; $2" /dev/null >screen.txt || fail "$2: $(cat screen.txt)"
  # A progress line ends by clearing the rest of the line.
  tr '\r' '\n' <screen.txt | grep -a $'.\033\\[K' | sed $'s/^\033\\[K//; s/\033\\[K.*//' >lines.txt || true
  [ -s lines.txt ] || fail "$2: no line of progress in: $(cat -v screen.txt)"
}
widest() { awk '{ if (length($0) > most) most = length($0) } END { print most }' "$@"; }

# Runs until several lines have appeared, ten per second, on a machine of any speed.
sed -i 's/max_updates: 60/max_updates: 0, max_minutes: 0.03/; s/every: 20,/every: 1000000,/' model.yaml
in_window 100 "'$TARN' train model.yaml --run wide"
grep -Eq '^update [0-9]+  loss [0-9.]+  (at least )?[0-9]+ s left  [0-9]+ tokens/s  lr [0-9.e-]+$' lines.txt ||
  fail "a wide window: $(cat lines.txt)"
in_window 24 "'$TARN' train model.yaml --run narrow"
[ "$(widest lines.txt)" -le 23 ] || fail "24 columns: $(cat lines.txt)"
grep -Eq '^update [0-9]+  loss [0-9.]+$' lines.txt || fail "24 columns: $(cat lines.txt)"
in_window 5 "'$TARN' train model.yaml --run tiny"
[ "$(widest lines.txt)" -le 4 ] || fail "5 columns: $(cat lines.txt)"

# The time left is not "at least 0 s": a validation remains, whose duration is still unknown.
"$TARN" train model.yaml --run last --set train.max_minutes=0 --set train.max_updates=3 --set train.log_every=1 >last.txt
grep -q '^update 2 .* at least [0-9.]* s left$' last.txt && grep -q '^update 3 .* only validation left$' last.txt ||
  fail "what is left at the end: $(cat last.txt)"

# The window shrinks during the training, which continues until some updates have been shown in it.
cat >shrink.sh <<END
'$TARN' train model.yaml --run shrunk --set train.max_minutes=10 --set valid.every=0 --set data.valid= &
lines() { cat shrunk/log.jsonl 2>/dev/null | wc -l; }
until [ \$(lines) -ge 4 ] || ! kill -0 \$!; do sleep 0.02; done
stty cols 24 </dev/tty
sleep 0.3
seen=\$(lines)
until [ \$(lines) -ge \$((seen + 2)) ] || ! kill -0 \$!; do sleep 0.02; done
kill -TERM \$!
wait \$!
[ \$? -eq 143 ]
END
in_window 100 "bash shrink.sh"
[ "$(head -1 lines.txt | widest)" -gt 23 ] || fail "it begins wide: $(head -1 lines.txt)"
[ "$(tail -1 lines.txt | widest)" -le 23 ] || fail "it ends narrow: $(tail -3 lines.txt)"

# A sweep: the log of a run begins with the validation of the untrained model, without a loss.
cat >sweep.yaml <<'END'
base: model.yaml
baseline: a-variant-with-a-name-that-is-longer-than-the-window-is-wide
seeds: [1]
parallel: 1
threads: 1
set:
  train: { max_minutes: 0.04, log_every: 1000000 }
  valid: { every: 1000000 }
variants:
  a-variant-with-a-name-that-is-longer-than-the-window-is-wide: {}
  short: { encoder.layers: L }
END
in_window 70 "'$TARN' sweep sweep.yaml --output out"
grep -q 'short seed 1$' lines.txt || fail "no line of a run without a loss: $(cat lines.txt)"
! grep -a 'nan' screen.txt || fail "a number that is none"
[ "$(widest lines.txt)" -le 69 ] || fail "70 columns: $(cat lines.txt)"

# Every other command: one line on standard error, within the window, that is removed at the end. --progress shows it at
# once, however short the work.
"$TARN" train model.yaml --run run --quiet --set train.max_updates=5 --set train.max_minutes=0
progress() {
  local what=$1
  shift
  in_window 40 "'$TARN' $* --progress >out.txt"
  [ "$(widest lines.txt)" -le 39 ] || fail "$*: 40 columns: $(cat lines.txt)"
  grep -Eq "$what" lines.txt || fail "$*: no \"$what\": $(cat lines.txt)"
  # The line is removed after its last update.
  tr '\r' '\n' <screen.txt | grep -a . | grep -av "$what" | grep -a $'^\033\\[K' >/dev/null || fail "$*: it stays: $(cat -v screen.txt)"
  bash -c "'$TARN' $* --progress >out.txt" 2>error.txt || fail "$*: $(cat error.txt)"
  grep -Eq "^tarn: $what" error.txt || fail "$* in a pipe: no line: $(cat error.txt)"
  bash -c "'$TARN' $* >out.txt" 2>error.txt
  ! grep -q "$what" error.txt || fail "$*: progress that nobody asked for: $(cat error.txt)"
}
progress 'preparing  [0-9]+ %' prepare --vocab vocab --source corpus/train.de --target corpus/train.en --output again
progress 'preparing  [0-9]+ %' prepare --vocab vocab --text corpus/train.de --stream 10 --output again
progress 'reading text  [0-9]+ %' vocab --type bpe --size 400 --output again.vocab corpus/train.de corpus/train.en
# SentencePiece reports no progress before it has made some pieces, and may have finished by then.
progress 'training the vocabulary  [0-9]+ (%|s so far)' vocab --type bpe --size 400 --output again.vocab corpus/train.de corpus/train.en
progress 'splitting into sentences  [0-9]+ %' sentences --output again.txt corpus/train.en
progress 'encoding  [0-9]+ %' encode --vocab vocab '<corpus/train.de'
"$TARN" encode --vocab vocab <corpus/train.de >tokens.txt
progress 'decoding  [0-9]+ s so far' decode --vocab vocab '<tokens.txt'
progress 'writing the corpus  [0-9]+ %' corpus --output again --sentences 5000
progress 'integrating  [0-9]+ %' series generate lorenz --output lorenz.csv
progress 'fitting the readout  [0-9]+ %' series train lorenz.csv --units 50 --output esn
progress 'forecasting  [0-9]+ %' series forecast esn lorenz.csv
progress 'translating  [0-9]+ %' translate run '<corpus/valid.de'
in_window 40 "cat corpus/valid.de | '$TARN' translate run --progress >out.txt"
grep -Eq 'translating  [0-9]+ s so far' lines.txt || fail "from a pipe: $(cat lines.txt)"
progress 'averaging  0 %' average --output mean.safetensors run/checkpoint_best.safetensors run/checkpoint_last.safetensors
progress 'writing the file  [0-9]+ %' export --dense run dense.safetensors
progress 'computing frozen weights  [0-9]+ %' prune --decoder-layers-to-keep 1 --encoder-layers-to-keep 1,2 run pruned
progress 'translating  [0-9]+ %' test run --source corpus/valid.de --reference corpus/valid.en
progress 'resampling  [0-9]+ %' bleu --reference corpus/valid.en --confidence corpus/valid.en

# -q shows none even on a terminal; NO_COLOR and a dumb terminal disable colours.
script -qec "'$TARN' prepare --vocab vocab --text corpus/train.de --output again --progress -q" /dev/null >screen.txt
! grep -aq preparing screen.txt || fail "--quiet: $(cat -v screen.txt)"
coloured() { script -qec "env -u NO_COLOR $1 '$TARN' help prepare" /dev/null >screen.txt && grep -aq $'\033' screen.txt; }
coloured TERM=xterm || fail "help without colours"
! coloured "TERM=xterm NO_COLOR=1" || fail "NO_COLOR is not heeded"
! coloured "TERM=dumb" || fail "a dumb terminal is given colours"
env -u NO_COLOR "$TARN" help prepare >out.txt
! grep -q $'\033' out.txt || fail "colours in a pipe"
script -qec "env TERM=dumb '$TARN' prepare --vocab vocab --text corpus/train.de --output again" /dev/null >screen.txt
! grep -aq $'\033' screen.txt || fail "a dumb terminal is sent codes: $(cat -v screen.txt)"

# Validation is shown on the line of the training.
in_window 100 "'$TARN' train model.yaml --run told --set train.max_minutes=0 --set train.max_updates=2 --set valid.every=1 --progress"
grep -Eq '^validating  [0-9]+ %' lines.txt || fail "no progress of a validation: $(cat lines.txt)"

# In a pipe every kind of work has one line per ten seconds, however often it restarts.
SECONDS=0
"$TARN" train model.yaml --run plain --progress --set train.max_minutes=0 --set train.max_updates=12 --set valid.every=1 >out.txt 2>error.txt ||
  fail "$(cat error.txt)"
[ "$(grep -c '^tarn: validating ' error.txt)" -le $((1 + SECONDS / 10 + 1)) ] && grep -q '^tarn: validating ' error.txt ||
  fail "a line for every validation: $(cat error.txt)"
