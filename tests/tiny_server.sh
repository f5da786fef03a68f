# For tests of tarn serve: a small translation model in the folder run, or where tiny_model=language is set before a
# language model without greatest length, and a server for it. Skips the test if the build lacks HTTP.
# Source it with: . "$(dirname "$0")/../tiny_server.sh"
. "$(dirname "${BASH_SOURCE[0]}")/helpers.sh"
! "$TARN" serve nowhere 2>&1 | grep -q "no libmicrohttpd" || { echo "$(basename "$0"): skipped, this build has no libmicrohttpd"; exit 77; }
"$TARN" corpus --output corpus --sentences 100 --held-out 10 || fail "corpus"
"$TARN" vocab --type whitespace --size 300 --output vocab corpus/train.de corpus/train.en >vocab.txt || fail "vocab"
"$TARN" prepare --vocab vocab --source corpus/train.de --target corpus/train.en --output train >/dev/null 2>&1 || fail "prepare"
cat >model.yaml <<'END_MODEL'
model: { d_model: 16, embeddings: all, max_length: 20 }
encoder: { layers: L }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }
data: { vocab: vocab, train: train }
train: { max_updates: 2, max_tokens: 200, threads: 1 }
translate: { beam: 3, max_len_a: 0, max_len_b: 5 }
END_MODEL
if [ "${tiny_model:-}" = language ]; then
  "$TARN" vocab --type bpe --size 300 --output vocab.model corpus/train.de corpus/train.en >vocab.txt 2>&1 || fail "vocab"
  "$TARN" prepare --vocab vocab.model --text corpus/train.en --output text >/dev/null 2>&1 || fail "prepare --text"
  sed -i '/^encoder/d; /^translate/d; s/all, max_length: 20/decoder, positions: none, max_length: 2000/; s/attention, heads: 2/gru/
    s/vocab: vocab, train: train/vocab: vocab.model, train: text/; s/max_updates: 2/max_updates: 30, lr: 0.01, warmup: 5/' model.yaml
fi
"$TARN" train model.yaml --run run >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"

server=""
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null' EXIT
# Sets $server to the server's process id and $port to its port; its address is in address.txt, its output in
# server.txt.
start() { start_with run "$@"; }  # ARGUMENT...
start_with() {  # MODEL ARGUMENT...
  rm -f address.txt  # else the previous server's may be found, and be empty when it is read
  "$TARN" serve "$@" --port 0 --threads 1 --wait 0 >address.txt 2>server.txt &
  server=$!
  within_two_minutes eval '[ -s address.txt ] || gone $server'
  port=$(sed -n 's|.*:\([0-9]*\)/$|\1|p' address.txt)
  [ -n "$port" ] || fail "serve $*: $(cat server.txt)"
}
stop() {
  kill -TERM $server
  wait $server || fail "the server ended with $?: $(cat server.txt)"
  server=""
}
