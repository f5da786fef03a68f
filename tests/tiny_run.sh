# For test scripts that train: data, a description (frozen and shared layers) and helpers, in the current folder.
# Source it with: . "$(dirname "$0")/../tiny_run.sh"
. "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"

# log_of RUN: prints the log without clock-dependent fields.
log_of() { sed -E 's/"(time|seconds|tokens_per_second)":[0-9.eE+-]+,?//g' "$1/log.jsonl" | sed -E 's/,?"ranks":\{[^}]*\}//'; }

# The tensor bytes of a checkpoint, without the header, which contains times.
tensors_of() { local n; n=$(od -An -tu8 -N8 "$1"); tail -c +$((9 + n)) "$1"; }

same_runs() {
  local file
  for file in checkpoint_last checkpoint_best; do
    cmp <(tensors_of "$1/$file.safetensors") <(tensors_of "$2/$file.safetensors") || fail "$file differs in $1 and $2"
  done
  diff <(log_of "$1") <(log_of "$2") || fail "the logs of $1 and $2 differ"
}

"$TARN" corpus --output corpus --sentences 300 --held-out 20 || fail "corpus"
"$TARN" vocab --type whitespace --size 400 --output vocab corpus/train.de corpus/train.en 2>vocab.txt ||
  fail "vocab: $(cat vocab.txt)"
for part in train valid; do
  "$TARN" prepare --vocab vocab --source corpus/$part.de --target corpus/$part.en --output $part >/dev/null ||
    fail "prepare $part"
done
cat >model.yaml <<'END'
model: { d_model: 32, embeddings: all }
encoder: { layers: (R1 L1)*2 }
decoder: { layers: L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 64 }
  R: { mixer: attention, heads: 2, ffn: 64, frozen: yes }
data: { vocab: vocab, train: train, valid: valid }
train: { max_updates: 60, max_tokens: 500, lr: 0.005, warmup: 20, log_every: 5, save_every: 10, keep_last: 2, threads: 2 }
valid: { every: 20, max_sentences: 5 }
END
