# tarn serve against garbage, cut connections and slow clients: 10,000 requests, every good one of them answered.
set -u
. "$(dirname "$0")/../tiny_server.sh"
start --timeout 300
resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/$server/status; }
"$HOSTILE_CLIENT" "$port" 2000 1 || fail "it ended with $?; the server says: $(cat server.txt)"
before=$(resident)
"$HOSTILE_CLIENT" "$port" 8000 2 || fail "it ended with $?; the server says: $(cat server.txt)"
# Memory that 8,000 requests had kept would be seen; that a few buffers grow is no leak. Sanitizers keep what is freed.
[ -n "${TARN_SANITIZED:-}" ] || [ "$(resident)" -lt $((before + 8000)) ] || fail "$before kB became $(resident)"
stop
[ "$(grep -c . server.txt)" -eq 2 ] || fail "the server says more than that it starts and stops: $(cat server.txt)"
