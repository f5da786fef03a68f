# tarn serve: requests with framing forbidden by RFC 9112, by raw sockets; accepted host names; bodies in flight.
set -u
. "$(dirname "$0")/../tiny_server.sh"
start --allow-host tarn.example
"$FRAMING_CLIENT" "$port" >out.txt 2>error.txt || fail "$(cat error.txt out.txt)"
[ "$(sed 's/ .*//' out.txt)" -ge 40 ] || fail "few forms: $(cat out.txt)"
# Refusals say what is wrong, and what to do.
ask() {  # FILE: the answer to its bytes, with which the connection ends, goes to answer.txt
  exec 9<>"/dev/tcp/127.0.0.1/$port"
  cat "$1" >&9
  timeout 120 cat <&9 >answer.txt
  exec 9>&-
}
answer() {  # CODE LINE REQUEST: the answer has this code and this line
  printf '%b' "$3" >request.txt
  ask request.txt
  [ "$(head -n 1 answer.txt | cut -d ' ' -f 2)" = "$1" ] && [ "$(tail -n 1 answer.txt)" = "{\"error\":\"$2\"}" ] ||
    fail "$3: not $1 with \"$2\": $(cat answer.txt)"
}
health='GET /health HTTP/1.1\r\n' host='Host: localhost\r\n'
answer 421 'this server is not known as evil.example; --allow-host evil.example would have it answer' "${health}Host: evil.example\r\n\r\n"
answer 403 'pages of https://evil.example may not ask this server; --allow-host with their host allows it' \
  "$health${host}Origin: https://evil.example\r\n\r\n"
answer 400 'there is more than one Host' "$health$host$host\r\n"
answer 400 'Host is no name of a host' "${health}Host: localhost/x\r\n\r\n"
answer 400 'the target of the request has a byte that none may have' "GET /health%00 HTTP/1.1\r\n$host\r\n"
answer 400 'the name of a header has a byte that none may have, such as the space before a colon' "$health${host}A : b\r\n\r\n"
post="POST /translate HTTP/1.1\r\n${host}Content-Type: application/json\r\n"
answer 400 'Content-Length and Transfer-Encoding exclude each other' "${post}Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n"
answer 400 'there is more than one Content-Length' "${post}Content-Length: 12\r\nContent-Length: 5\r\n\r\n"
answer 400 'there is more than one Transfer-Encoding' "${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n"
answer 501 'the only Transfer-Encoding that is known is chunked' "${post}Transfer-Encoding: gzip, chunked\r\n\r\n"
# A well-framed request with an unknown key: names the nearest key that it does not have yet, and all of them.
keys='\"text\", \"prefix\", \"force_words\", \"coverage_penalty\", \"alignment\", \"tokens\", \"n_best\", \"beam\", \"length_penalty\", \"samples\", \"stream\", \"temperature\", \"top_k\", \"top_p\", \"min_p\", \"typical_p\", \"seed\", \"mbr\", \"repetition_penalty\", \"presence_penalty\", \"frequency_penalty\", \"no_repeat_ngram\", \"banned\", \"groups\", \"diversity_penalty\", \"model\"'
asks() { printf '%s' "${post}Connection: close\r\nContent-Length: ${#1}\r\n\r\n$1"; }
answer 400 "/translate knows no \\\"txt\\\"; did you mean \\\"text\\\"? Its keys are $keys" "$(asks '{"txt":"a"}')"
answer 400 "/translate knows no \\\"txt\\\"; its keys are $keys" "$(asks '{"text":"b","txt":"a"}')"
answer 400 "/translate knows no \\\"nbest\\\"; did you mean \\\"n_best\\\"? Its keys are $keys" "$(asks '{"text":"b","nbest":1}')"
answer 400 '\"text\" is missing' "$(asks '{}')"
stop

exactly 2 'tarn serve: --allow-host http://x: a name or an address without port is expected, such as example.org' "$TARN" serve run --allow-host http://x
exactly 2 'tarn serve: --max-pending-bytes is less than --max-body (see tarn serve --help)' "$TARN" serve run --max-pending-bytes 1000

# Forty bodies of 1 MB at once, with space for two: the others get 503, and the server keeps answering.
start --max-pending-bytes 2100000
"$FRAMING_CLIENT" "$port" 40 >out.txt 2>error.txt || fail "bodies: $(cat error.txt out.txt)"
stop

# The same with little memory, however it is limited: no busy loop, and an answer for every client.
[ -z "${TARN_SANITIZED:-}" ] || exit 0
spent() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }  # user and system ticks of the processor
little() {  # KILOBYTES: whether a server starts with so much address space
  rm -f address.txt  # else the previous server's would be read
  (ulimit -v "$1" && exec "$TARN" serve run --port 0 --threads 1 --wait 0 >address.txt 2>server.txt) &
  server=$!
  within_two_minutes eval '[ -s address.txt ] || gone $server'
  port=$(sed -n 's|.*:\([0-9]*\)/$|\1|p' address.txt)
  [ -n "$port" ]
}
flood() {
  "$FRAMING_CLIENT" "$port" 40 >out.txt 2>error.txt || grep -q ' 0 failed' out.txt || fail "little memory: $(cat error.txt out.txt)"
  [ "$(spent)" -lt 500 ] || fail "the server turns in circles: $(spent) ticks"
  stop
}
little 400000 || fail "little memory: $(cat server.txt)"
flood
# And with the minimum that it starts with; with less it says so. With much less, libraries may fail before the program
# starts.
limit=30000
until little $limit; do
  wait $server && fail "little memory: it ends well: $(cat server.txt)"
  mv server.txt refused.txt
  limit=$((limit + 2000))
  [ $limit -lt 400000 ] || fail "it does not start: $(cat refused.txt)"
done
grep -qxE 'tarn serve: the model leaves [0-9.]+ MB of memory, and connections need 16 MB' refused.txt || fail "too little memory: $(cat refused.txt)"
flood

# Memory that runs out anywhere between a body's first byte and its answer: this many kilobytes more than in use.
start
text=$(head -c 1000000 /dev/zero | tr '\0' a)
printf '%b' "$(asks "{\"text\":\"$text\"}")" >body.txt
before=$(spent)
short=0
for room in $(seq 0 100 2400); do
  prlimit --pid $server --data=$((1024 * ($(sed -n 's/^VmData:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/$server/status) + room))):
  ask body.txt
  case $(head -n 1 answer.txt | cut -d ' ' -f 2) in
    413) ;;  # it was read, and its text is too long
    503) short=$((short + 1)) && grep -q '^Retry-After: 1' answer.txt && grep -q '^{"error":"there is not enough memory"}$' answer.txt ||
      fail "room for $room kB: $(cat answer.txt)" ;;
    *) fail "room for $room kB: $(cat answer.txt)" ;;
  esac
  prlimit --pid $server --data=unlimited
done
[ $short -ge 3 ] || fail "memory never ended"
[ $(($(spent) - before)) -lt 300 ] || fail "25 bodies took $(($(spent) - before)) ticks"
answer 400 '\"text\" is missing' "$(asks '{}')"
stop
