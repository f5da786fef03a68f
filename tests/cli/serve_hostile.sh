# tarn serve against garbage, dropped connections and slow clients: 10,000 requests, with every valid one answered.
set -u
. "$(dirname "$0")/../tiny_server.sh"
start --timeout 300
resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/$server/status; }
"$HOSTILE_CLIENT" "$port" 2000 1 || fail "it ended with $?; the server says: $(cat server.txt)"
before=$(resident)
"$HOSTILE_CLIENT" "$port" 8000 2 || fail "it ended with $?; the server says: $(cat server.txt)"
# Memory leaked by 8,000 requests would be visible; growth of a few buffers is no leak. Sanitizers keep freed memory.
[ -n "${TARN_SANITIZED:-}" ] || [ "$(resident)" -lt $((before + 8000)) ] || fail "$before kB became $(resident)"
stop
[ "$(grep -c . server.txt)" -eq 2 ] || fail "the server says more than that it starts and stops: $(cat server.txt)"
