# tarn serve: streamed translations, greedy or by a beam, and clients that leave them, keep nobody waiting.
set -u
command -v curl >/dev/null || { echo "serve_stream.sh: skipped, there is no curl"; exit 77; }
. "$(dirname "$0")/../tiny_server.sh"
metric() { curl -s "http://127.0.0.1:$port/metrics" | sed -n "s/^$1 //p"; }

ask() { [ "$(curl -s -o answer.json -w '%{http_code}' -H 'Content-Type: application/json' -d '{"text": "a"}' "http://127.0.0.1:$port/translate")" = 200 ]; }
alone() { metric 'tarn_running_texts_bucket{le="1"}'; }  # texts that joined none
ask_alone() { ask && [ "$(alone)" -ge $((before + 2)) ]; }  # besides the stream's first

start --max-texts 20000 --max-body 10000000
for beam in 1 3; do
  yes "$(head -n 1 corpus/train.de)" | head -n 20000 | jq -R . | jq -s -c "{text: ., beam: $beam, stream: true}" >body.json
  before=$(alone) texts=$(metric tarn_running_texts_count)
  exec 5<>"/dev/tcp/127.0.0.1/$port"
  { printf 'POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' "$(wc -c <body.json)"; cat body.json; } >&5
  timeout 120 sed -n '/^data: {/{p;q}' <&5 | grep -q '"part"' || fail "beam $beam: no first part"
  # Another request joins it between its texts.
  ask || fail "beam $beam: the next request: $(cat answer.json)"
  [ $(($(metric tarn_running_texts_count) - texts)) -lt 20000 ] || fail "beam $beam: the next request waited for all of the stream"
  exec 5>&-
  within_two_minutes ask_alone || fail "beam $beam: the stream goes on"
  [ $(($(metric tarn_running_texts_count) - texts)) -lt 20000 ] || fail "beam $beam: all texts were translated for a client that left"
done
stop
