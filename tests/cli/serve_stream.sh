# tarn serve: clients that leave a streamed translation, greedy or by a beam, keep nobody waiting.
set -u
command -v curl >/dev/null || { echo "serve_stream.sh: skipped, there is no curl"; exit 77; }
. "$(dirname "$0")/../tiny_server.sh"
metric() { curl -s "http://127.0.0.1:$port/metrics" | sed -n "s/^$1 //p"; }

start --max-texts 20000 --max-body 10000000
for beam in 1 3; do
  yes "$(head -n 1 corpus/train.de)" | head -n 20000 | jq -R . | jq -s -c "{text: ., beam: $beam, stream: true}" >body.json
  before=$(metric tarn_target_tokens_total) done=$(metric tarn_batch_texts_count)
  exec 5<>"/dev/tcp/127.0.0.1/$port"
  { printf 'POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' "$(wc -c <body.json)"; cat body.json; } >&5
  timeout 120 sed -n '/^data: {/{p;q}' <&5 | grep -q '"part"' || fail "beam $beam: no first part"
  exec 5>&-
  [ "$(curl -s -o answer.json -w '%{http_code}' -H 'Content-Type: application/json' -d '{"text": "a"}' "http://127.0.0.1:$port/translate")" = 200 ] ||
    fail "beam $beam: the next request: $(cat answer.json)"
  within_two_minutes eval '[ "$(metric tarn_batch_texts_count)" -ge $((done + 2)) ]' || fail "beam $beam: the stream goes on"
  [ $(($(metric tarn_target_tokens_total) - before)) -lt 20000 ] || fail "beam $beam: all texts were translated for a client that left"
done
stop
