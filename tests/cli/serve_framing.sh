# tarn serve: requests whose framing RFC 9112 forbids, by raw sockets; names by which it may be asked; bodies in flight.
set -u
. "$(dirname "$0")/../tiny_server.sh"
start --allow-host tarn.example
"$FRAMING_CLIENT" "$port" >out.txt 2>error.txt || fail "$(cat error.txt out.txt)"
[ "$(sed 's/ .*//' out.txt)" -ge 40 ] || fail "few forms: $(cat out.txt)"
# The lines of a refusal say what to do. HTTP/1.0, so that the answer ends with the connection.
answer() {  # LINE...
  exec 9<>"/dev/tcp/127.0.0.1/$port"
  { printf 'GET /health HTTP/1.0\r\n'; printf '%s\r\n' "$@" ''; } >&9
  tail -n 1 <&9
  exec 9>&-
}
[ "$(answer 'Host: evil.example')" = '{"error":"this server is not known as evil.example; --allow-host evil.example would have it answer"}' ] ||
  fail "another host: $(answer 'Host: evil.example')"
[ "$(answer 'Origin: https://evil.example')" = '{"error":"pages of https://evil.example may not ask this server; --allow-host with their host allows it"}' ] ||
  fail "another page: $(answer 'Origin: https://evil.example')"
stop

refuse 2 '--allow-host http://x: a name or an address without port is expected' "$TARN" serve run --allow-host http://x
refuse 2 '--max-pending-bytes is less than --max-body' "$TARN" serve run --max-pending-bytes 1000

# Forty bodies of 1 MB at the same time, with room for two: the others are answered with 503, and the server goes on answering.
start --max-pending-bytes 2100000
"$FRAMING_CLIENT" "$port" 40 >out.txt 2>error.txt || fail "bodies: $(cat error.txt out.txt)"
stop

# The same with little memory, however the bound comes about: no turning in circles, and an answer for everybody.
if [ -z "${TARN_SANITIZED:-}" ]; then
  rm -f address.txt  # else that of the server before is read
  (ulimit -v 400000 && exec "$TARN" serve run --port 0 --threads 1 --wait 0 >address.txt 2>server.txt) &
  server=$!
  within_two_minutes eval '[ -s address.txt ] || gone $server'
  port=$(sed -n 's|.*:\([0-9]*\)/$|\1|p' address.txt)
  [ -n "$port" ] || fail "little memory: $(cat server.txt)"
  "$FRAMING_CLIENT" "$port" 40 >out.txt 2>error.txt || grep -q ' 0 failed' out.txt || fail "little memory: $(cat error.txt out.txt)"
  ticks=$(cut -d ' ' -f 14 "/proc/$server/stat")
  [ "$ticks" -lt 500 ] || fail "the server turns in circles: $ticks ticks"
  stop
fi
