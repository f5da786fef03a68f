#!/usr/bin/env bash
# Commands whose work is shared by several processes with Open MPI or MPICH: the output is that of one process, line by
# line and byte by byte; only rank 0 reads, writes and prints; a failure is one line of tarn and an exit code of all
# ranks.
set -eu
. "$(dirname "$0")/../mpi_ranks.sh"
. "$(dirname "$0")/../tiny_run.sh"
sed -i 's/threads: 2/threads: 1/' model.yaml
"$TARN" train model.yaml --run run --quiet
"$TARN" prepare --vocab vocab --text corpus/train.en --output text >/dev/null
cat >text.yaml <<'END'
model: { d_model: 32 }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 64 } }
data: { vocab: vocab, train: text }
train: { max_updates: 30, max_tokens: 500, lr: 0.005, warmup: 5, threads: 1 }
END
"$TARN" train text.yaml --run text --quiet
printf '{"context": "w3", "choices": ["w4 w5", "w9"], "answer": 0}\n{"context": "", "choices": ["w7", "w8 w3 w5", "w3"], "answer": 1}\n' >questions
mkdir pairs
paste -d'|' <(head -n 40 corpus/train.en) <(tail -n 40 corpus/train.en) |
  sed 's/^\(.*\)|\(.*\)$/{"sentence_good": "\1", "sentence_bad": "\2"}/' >pairs/one.jsonl
{ printf 'text\tlabel\n'; head -n 120 corpus/train.en | awk '{ print $0 "\t" (NF > 6 ? "long" : "short") }'; } >table.tsv
"$TARN" prepare --vocab vocab --table table.tsv --text text --labels label --output labelled >/dev/null
cat >labels.yaml <<'END'
model: { task: classification, d_model: 32 }
encoder: { layers: L }
head: { pool: mean }
kinds: { L: { mixer: attention, heads: 2, ffn: 64 } }
data: { vocab: vocab, train: labelled }
train: { max_updates: 30, max_tokens: 500, lr: 0.005, warmup: 5, threads: 1 }
END
"$TARN" train labels.yaml --run labels --quiet
head -n 90 corpus/train.de | sed '7s/.*//' >lines

# without_times FILE: prints it without clock-dependent parts.
without_times() { sed -E 's/ in [0-9.]+ s(: [0-9]+ target tokens.s)?//; s/"seconds":[^,]*,//' "$1"; }
# same ARGUMENT...: compares one process with $counts ranks, with the lines as standard input.
same() {
  "$TARN" "$@" --threads 1 <lines >one.txt 2>one.err || fail "$*: $(cat one.err)"
  [ -s one.txt ] || fail "$*: no output"
  for ranks in $counts; do
    launch "$ranks" "$@" --threads 1 <lines >many.txt 2>many.err || fail "$kind, $ranks ranks: $*: $(cat many.err)"
    cmp <(without_times one.txt) <(without_times many.txt) || fail "$kind, $ranks ranks: $*: another output"
    cmp <(without_times one.err) <(without_times many.err) || fail "$kind, $ranks ranks: $*: says $(cat many.err)"
  done
}

counts="2 3"
for kind in "${kinds[@]}"; do
  same translate run --n-best 3 --window 20
  same translate run --json
  same score text - --tokens --window 20
  same score text - --stride 7 --window 16
  same blimp text pairs
  same choices text questions --json
  same classify labels corpus/valid.en --max-tokens 60 --top 2
  same test labels --labelled labelled
  same test text --blimp pairs
  same test run --source corpus/valid.de --reference corpus/valid.en
  mv run/test.hyp three.hyp
  "$TARN" test run --source corpus/valid.de --reference corpus/valid.en --threads 1 >/dev/null 2>&1
  cmp run/test.hyp three.hyp || fail "$kind: another test.hyp"
  counts=2  # enough for the other MPI
done

kind=${kinds[0]}
# Unlimited input is answered as it arrives.
mkfifo endless
launch 2 translate run --threads 1 <endless >answers.txt 2>error.txt &
exec 9>endless
answered() { [ "$(wc -l <answers.txt)" -eq "$1" ]; }
head -n 1 lines >&9
within_two_minutes answered 1 || fail "a line is not answered: $(cat error.txt)"
head -n 2 lines >&9
within_two_minutes answered 3 || fail "the next lines are not answered: $(cat error.txt)"
exec 9>&-
wait $! || fail "the end of the text is a failure: $(cat error.txt)"

# fails PATTERN ARGUMENT...: all ranks end, with one line.
fails() {
  local pattern=$1 code=0
  shift
  launch 2 "$@" <lines >out.txt 2>error.txt || code=$?
  [ $code -ne 0 ] || fail "$*: no failure"
  one_line error.txt "$pattern"
}
printf 'a b\n\377\n' >bytes
fails 'line 2: invalid UTF-8' translate run --strict --input bytes
fails 'nowhere: cannot read' translate nowhere
fails 'did you mean --beam' translate run --beem 3
fails '"worst"' translate run --checkpoint worst
fails 'nowhere' score text nowhere
fails 'no file \*.jsonl' blimp text corpus
fails 'labels.txt' test labels --labelled labels.txt
[ -e /dev/full ] && fails 'cannot write' translate run --output /dev/full

# --comm self makes a process work alone.
for rank in 0 1; do
  SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 "$TARN" translate run --comm self --threads 1 <lines >alone.txt 2>/dev/null || fail "--comm self"
done
"$TARN" translate run --threads 1 <lines 2>/dev/null | cmp - alone.txt || fail "--comm self gives another output"
