# tarn serve against garbage, cut connections and slow clients: 10,000 requests, every good one of them answered.
set -u
. "$(dirname "$0")/../helpers.sh"
! "$TARN" serve nowhere 2>&1 | grep -q "no libmicrohttpd" || { echo "serve_hostile.sh: skipped, this build has no libmicrohttpd"; exit 77; }
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
translate: { beam: 2, max_len_a: 0, max_len_b: 5 }
END_MODEL
"$TARN" train model.yaml --run run >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"

"$TARN" serve run --port 0 --threads 1 --timeout 300 --wait 0 >address.txt 2>server.txt &
server=$!
trap 'kill -KILL $server 2>/dev/null' EXIT
within_two_minutes eval '[ -s address.txt ] || gone $server'
port=$(sed -n 's|.*:\([0-9]*\)/$|\1|p' address.txt)
[ -n "$port" ] || fail "serve: $(cat server.txt)"
resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/$server/status; }
"$HOSTILE_CLIENT" "$port" 2000 1 || fail "it ended with $?; the server says: $(cat server.txt)"
before=$(resident)
"$HOSTILE_CLIENT" "$port" 8000 2 || fail "it ended with $?; the server says: $(cat server.txt)"
# Memory that 8,000 requests had kept would be seen; that a few buffers grow is no leak. Sanitizers keep what is freed.
[ -n "${TARN_SANITIZED:-}" ] || [ "$(resident)" -lt $((before + 8000)) ] || fail "$before kB became $(resident)"
kill -TERM $server
wait $server || fail "the server ended with $?: $(cat server.txt)"
trap - EXIT
[ "$(grep -c . server.txt)" -eq 2 ] || fail "the server says more than that it starts and stops: $(cat server.txt)"
