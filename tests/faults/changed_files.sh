#!/usr/bin/env bash
# Data and models that are cut off or overwritten while they are read: one line with the file's name, never a death by
# SIGBUS, and a training whose state is saved and goes on to the bits of one that nobody disturbed.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

cp train.tarn train.good
cp valid.tarn valid.good
"$TARN" train model.yaml --run whole --quiet
sed 's/max_updates: 60/max_updates: 100000/; s/save_every: 10/save_every: 100000/; s/every: 20/every: 100000/' \
  model.yaml >long.yaml

# disturb FILE PATTERN HOW...: trains until there are lines in the log, runs HOW, and waits for the end.
disturb() {
  local file=$1 pattern=$2 got=0
  shift 2
  rm -rf run
  "$TARN" train long.yaml --run run >out.txt 2>error.txt &
  local pid=$!
  while [ "$(cat run/log.jsonl 2>/dev/null | wc -l)" -lt 3 ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
  "$@"
  wait $pid || got=$?
  [ $got -eq 1 ] || fail "$*: exit code $got: $(cat error.txt)"
  [ "$(wc -l <error.txt)" -eq 1 ] || fail "$*: not one line: $(cat error.txt)"
  grep -q "^tarn train: $file: .*$pattern.*saved after update [1-9][0-9]*\. Restore the file, then run: tarn train --resume run" error.txt ||
    fail "$*: $(cat error.txt)"
  # What is saved is the update that the line names, and it is where the run that was not disturbed came by.
  local update
  update=$(sed -E 's/.*saved after update ([0-9]+).*/\1/' error.txt)
  "$TARN" inspect run >inspect.txt || fail "$*: the state cannot be read"
  grep -q "update $update)" inspect.txt || fail "$*: the state is not that of update $update: $(head -1 inspect.txt)"
  cp train.good train.tarn
  cp valid.good valid.tarn
}
# A training that goes on from there has the bits of one that did the same without disturbance.
go_on() {
  local update
  update=$(sed -E 's/.*saved after update ([0-9]+).*/\1/' error.txt)
  "$TARN" train --resume run --set train.max_updates=$((update + 5)) --quiet || fail "it does not go on"
  rm -rf other
  sed "s/max_updates: 100000/max_updates: $((update + 5))/" long.yaml >other.yaml
  "$TARN" train other.yaml --run other --quiet
  cmp <(tensors_of run/checkpoint_last.safetensors) <(tensors_of other/checkpoint_last.safetensors) ||
    fail "a training that was disturbed ends with other bits"
}
disturb train.tarn "cut off or overwritten\|changed while it was in use" truncate -s 0 train.tarn
go_on
disturb train.tarn "cut off or overwritten\|changed while it was in use" truncate -s 4096 train.tarn
disturb train.tarn "changed while it was in use\|cut off" cp valid.good train.tarn
disturb train.tarn "time of its last change" touch train.tarn
disturb train.tarn "changed while it was in use\|cut off" \
  sh -c 'head -c "$(stat -c %s train.good)" /dev/urandom | dd of=train.tarn conv=notrunc 2>/dev/null'
go_on
disturb valid.tarn "cut off or overwritten\|changed while it was in use" truncate -s 0 valid.tarn
rm -rf run

# A model that is read while it is overwritten is the old one or the new one, or one line says what happened.
model=$PWD/model.safetensors
cp whole/checkpoint_best.safetensors "$model"
(while :; do cp whole/checkpoint_best.safetensors "$model"; truncate -s 5000 "$model"; done) &
writer=$!
trap 'kill $writer 2>/dev/null || true' EXIT
for i in 1 2 3 4 5 6 7 8; do
  for command in "inspect" "export --dense" "average --output average.safetensors"; do
    got=0
    case $command in
      export*) set -- export --dense "$model" dense.safetensors ;;
      average*) set -- average --output average.safetensors "$model" "$model" ;;
      *) set -- inspect "$model" ;;
    esac
    "$TARN" "$@" >out.txt 2>error.txt || got=$?
    [ $got -le 1 ] || fail "$*: exit code $got: $(cat error.txt)"
    if [ $got -eq 1 ]; then
      grep -q "model.safetensors" error.txt || fail "$*: the line does not name the file: $(cat error.txt)"
    fi
  done
done
