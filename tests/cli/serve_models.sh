# Several models in one server: by name, within a bound of memory, and read again on SIGHUP while requests go on.
set -u
command -v curl >/dev/null || { echo "serve_models.sh: skipped, there is no curl"; exit 77; }
tiny_model=language
. "$(dirname "$0")/../tiny_server.sh"
sed 's/^train: {/train: { seed: 7,/' model.yaml >other.yaml
"$TARN" train other.yaml --run other >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"
sed '/^decoder/i encoder: { layers: L }' model.yaml | sed 's/embeddings: decoder/embeddings: all/; s/text }/pairs }/; s/gru/attention, heads: 2/' >pairs.yaml
"$TARN" prepare --vocab vocab.model --source corpus/train.de --target corpus/train.en --output pairs >/dev/null 2>&1 || fail "prepare"
sed -i 's/positions: none, max_length: 2000/max_length: 200/; s/train: text/train: pairs/' pairs.yaml
"$TARN" train pairs.yaml --run pairs >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"
expect() {  # CODE PATH BODY
  local code
  code=$(curl -s -o answer.json -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "$3" "$url$2")
  [ "$code" = "$1" ] || fail "$2 $3: code $code, not $1: $(cat answer.json)"
}
metric() { curl -s "$url/metrics" | sed -n "s/^$1 //p"; }
texts() { "$TARN" generate "$1" --prompt "The cat" --max-tokens 12 --min-tokens 12 --json --threads 1 2>/dev/null | jq -r '.texts[0].continuation'; }
ask='"max_tokens": 12, "min_tokens": 12'
one() { expect 200 /v1/completions "{\"model\": \"$1\", \"prompt\": \"The cat\", \"temperature\": 0, $ask}"; jq -r '.choices[0].text' answer.json; }
first=$(texts run)
second=$(texts other)
[ "$first" != "$second" ] || fail "both models say $first"

start --model two=other --model pairs=pairs --max-tokens 3000000 --stream-bytes 1000000000
url=http://127.0.0.1:$port
[ "$(curl -s "$url/v1/models" | jq -c '[.data[].id]') $(curl -s "$url/health" | jq -c .models)" = '["run","two","pairs"] ["run","two","pairs"]' ] ||
  fail "models: $(curl -s "$url/v1/models")"
[ "$(metric tarn_models)" -eq 1 ] || fail "all models are read before they are asked"
[ "$(one run)" = "$first" ] || fail "another text of run: $(cat answer.json)"
[ "$(one two)" = "$second" ] || fail "another text of two: $(cat answer.json)"
[ "$(jq -r .model answer.json)" = two ] || fail "the model's name: $(cat answer.json)"
expect 200 /generate "{\"text\": \"The cat\", \"model\": \"two\", $ask}"
[ "$(jq -r '.generations[0].texts[0].continuation' answer.json)" = "$second" ] || fail "/generate of two: $(cat answer.json)"
expect 200 /translate '{"text": "Der Hund."}'  # the first that can do it
expect 404 /translate '{"text": "Der Hund.", "model": "two"}'
grep -q 'cannot do this' answer.json || fail "a model that cannot translate: $(cat answer.json)"
expect 404 /generate '{"text": "The", "model": "three"}'
[ "$(metric tarn_models) $(metric tarn_model_loads_total)" = '3 3' ] || fail "models: $(curl -s "$url/metrics" | grep tarn_model)"

# SIGHUP: new files are read beside the old ones; a stream and requests meanwhile go on; what cannot be read changes nothing.
file=$(cd run && ls checkpoint_*.safetensors | head -n 1)
for name in checkpoint_best checkpoint_last; do
  [ ! -e run/$name.safetensors ] || { cp other/$name.safetensors new && mv new run/$name.safetensors; }
done
exec 5<>"/dev/tcp/127.0.0.1/$port"
body='{"model": "run", "prompt": "The", "max_tokens": 3000, "min_tokens": 3000, "stream": true}'
printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body" >&5
timeout 120 sed -n '/^data: {/{p;q}' <&5 | grep -q text_completion || fail "no stream"
for i in $(seq 8); do
  curl -s -o many-$i.json -w '%{http_code}' -H 'Content-Type: application/json' -d "{\"model\": \"run\", \"prompt\": \"The cat\", \"temperature\": 0, $ask}" \
    "$url/v1/completions" >code-$i.txt &
  pids[i]=$!
done
kill -HUP $server
wait "${pids[@]}"
for i in $(seq 8); do
  text=$(jq -r '.choices[0].text' many-$i.json)
  [ "$(cat code-$i.txt)" = 200 ] && { [ "$text" = "$first" ] || [ "$text" = "$second" ]; } || fail "lost: $(cat code-$i.txt many-$i.json)"
done
within_two_minutes grep -q 'run is now run/' server.txt || fail "SIGHUP: $(cat server.txt)"
[ "$(one run)" = "$second" ] || fail "the old model answers: $(cat answer.json)"
timeout 120 grep -q 'data: \[DONE\]' <&5 || fail "SIGHUP lost a stream"
exec 5>&-
printf garbage >new && mv new "run/$file"
for other in run/checkpoint_*.safetensors; do cp "run/$file" "$other.new" 2>/dev/null; mv "$other.new" "$other"; done
kill -HUP $server
within_two_minutes grep -q 'run stays as it is: ' server.txt || fail "a damaged file: $(cat server.txt)"
[ "$(one run)" = "$second" ] || fail "a damaged file took the model away: $(cat answer.json)"
stop

# A bound in which one model of two has room: each is forgotten for the other, and read again.
if [ -z "${TARN_SANITIZED:-}" ]; then  # which keep freed memory
  for name in big large; do
    sed "s/^train: {/train: { seed: ${#name},/; s/d_model: 16/d_model: 384/; s/ffn: 32/ffn: 1500/; s/max_updates: 30/max_updates: 1/" model.yaml >big.yaml
    "$TARN" train big.yaml --run $name >train.txt 2>&1 || fail "train: $(tail -n 3 train.txt)"
  done
  for memory in 0 half; do
    [ $memory = 0 ] || memory=$((one_bytes + (both_bytes - one_bytes) / 2))
    start_with big --model large=large --model-memory $memory
    url=http://127.0.0.1:$port
    one_bytes=$(metric tarn_model_bytes)
    for name in large big large; do [ -n "$(one $name)" ] || fail "no text of $name"; done
    both_bytes=$(metric tarn_model_bytes)
    models="$(metric tarn_models) $(metric tarn_model_loads_total)"
    if [ $memory = 0 ]; then
      [ "$models" = '2 2' ] || fail "without a bound: $models, $(cat server.txt)"
    else
      [ "$models" = '1 4' ] && [ "$both_bytes" -le $memory ] || fail "$models of $both_bytes bytes, with a bound of $memory"
    fi
    stop
  done
fi
refuse 1 'the model "other" takes [0-9]* bytes, more than the 1000 of --model-memory' "$TARN" serve other --port 0 --threads 1 --model-memory 1000

exactly 2 'tarn serve: --model two: NAME=RUN is expected (see tarn serve --help)' "$TARN" serve other --port 0 --model two
exactly 2 'tarn serve: there are two models of the name other (see tarn serve --help)' "$TARN" serve other --port 0 --model other=run
refuse 1 'nowhere' "$TARN" serve other --port 0 --model two=nowhere
