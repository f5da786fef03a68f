#!/usr/bin/env bash
# Lines of progress on a terminal: never wider than the window, also when it changes, and without numbers that are none.
# Skipped where there is no script(1), which makes a terminal.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
command -v script >/dev/null || { echo "no script(1): util-linux or bsdutils"; exit 77; }

# in_window COLUMNS COMMAND: runs it on a terminal and leaves the pieces that it wrote over one another in lines.txt.
in_window() {
  script -qec "stty cols $1 rows 24; $2" /dev/null >screen.txt || fail "$2: $(cat screen.txt)"
  # A line of progress ends by clearing what is behind it.
  tr '\r' '\n' <screen.txt | grep -a $'.\033\\[K' | sed $'s/^\033\\[K//; s/\033\\[K.*//' >lines.txt || true
  [ -s lines.txt ] || fail "$2: no line of progress in: $(cat -v screen.txt)"
}
widest() { awk '{ if (length($0) > most) most = length($0) } END { print most }' "$@"; }

# As long as it takes to see several lines, which come ten times a second, on however fast a machine.
sed -i 's/max_updates: 60/max_updates: 0, max_minutes: 0.01/; s/every: 20,/every: 1000000,/' model.yaml
in_window 100 "'$TARN' train model.yaml --run wide"
grep -Eq '^update [0-9]+  loss [0-9.]+  (at least )?[0-9]+ s left  [0-9]+ tokens/s  lr [0-9.e-]+$' lines.txt ||
  fail "a wide window: $(cat lines.txt)"
in_window 24 "'$TARN' train model.yaml --run narrow"
[ "$(widest lines.txt)" -le 23 ] || fail "24 columns: $(cat lines.txt)"
grep -Eq '^update [0-9]+  loss [0-9.]+$' lines.txt || fail "24 columns: $(cat lines.txt)"
in_window 5 "'$TARN' train model.yaml --run tiny"
[ "$(widest lines.txt)" -le 4 ] || fail "5 columns: $(cat lines.txt)"

# The end is not "at least 0 s" away: what is left is a validation, and nobody knows yet how long one takes.
"$TARN" train model.yaml --run last --set train.max_minutes=0 --set train.max_updates=3 --set train.log_every=1 >last.txt
grep -q '^update 2 .* at least [0-9.]* s left$' last.txt && grep -q '^update 3 .* only validation left$' last.txt ||
  fail "what is left at the end: $(cat last.txt)"

# The window becomes narrow while the training is at work, which goes on until some updates have been seen in it.
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

# A sweep: the log of a run begins with the validation of the untrained model, when there is no loss yet.
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
