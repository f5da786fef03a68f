# Functions of bench/run.sh: data, one run of tarn, one run of the peer, turns, tables.
TARN=${TARN:-$root/build/release/tarn}
TARN_DATA=${TARN_DATA:-$root/../shared/data}
TARN_PEERS=${TARN_PEERS:-$root/../shared/peers}
PYTHON=${PYTHON:-python3}
TCMALLOC=${TCMALLOC:-$(ls /usr/lib/*/libtcmalloc.so.4 2>/dev/null | head -n 1)}
THREADS=${THREADS:-2}

have_peer() {
  [ -f "$TARN_PEERS/torch_mt.py" ] && "$PYTHON" -c 'import torch, numpy' 2>/dev/null
}

# Text, vocabulary and shards in the folder $1; the same pieces as words for the peer.
prepare_data() {
  "$TARN" vocab --type bpe --size 10000 --output "$1/vocab.model" "$TARN_DATA/multi30k/train.de" \
    "$TARN_DATA/multi30k/train.en" >"$1/vocab.log"
  "$TARN" prepare --vocab "$1/vocab.model" --source "$TARN_DATA/multi30k/train.de" \
    --target "$TARN_DATA/multi30k/train.en" --output "$1/train" >"$1/prepare.log"
  if have_peer; then
    for language in de en; do
      "$TARN" encode --vocab "$1/vocab.model" <"$TARN_DATA/multi30k/train.$language" >"$1/train.bpe.$language"
    done
  fi
}

# One run of tarn: prints {"tokens_per_second", "step_ms", "peak_mb"}; $1 folder, $2 updates, $3 configuration, $4 precision.
run_tarn() {
  rm -rf "$1/run"
  "$TARN" train "$3" --run "$1/run" --threads "$THREADS" --set "data.vocab=$1/vocab.model" --set "data.train=$1/train" \
    --set data.valid= --set data.valid_reference= --set "train.max_updates=$2" --set train.log_every=1 \
    --set "train.precision=$4" --set train.max_tokens=4096 --set train.accumulate=1 --set train.max_epochs=0 \
    --set train.average=0 --json >"$1/tarn.json"
  jq -s --slurpfile result "$1/tarn.json" 'map(select(.kind == "train")) as $lines |
    {tokens_per_second: ($lines[3:] | map(.tokens_per_second) | sort | .[length / 2 | floor]),
     step_ms: ([range(3; $lines | length) | ($lines[.].time - $lines[. - 1].time) * 1000] | sort | .[length / 2 | floor]),
     peak_mb: ($result[-1].peak_resident_bytes / 1e6)}' "$1/run/log.jsonl"
}

# One run of the peer, the same figures; $1 folder, $2 updates, $3 precision, then options of torch_mt.py.
run_peer() {
  local folder=$1 count=$2 precision=$3
  shift 3
  LD_PRELOAD=$TCMALLOC "$PYTHON" "$TARN_PEERS/torch_mt.py" --src "$folder/train.bpe.de" --tgt "$folder/train.bpe.en" \
    --dtype "$precision" --fast-dropout --threads "$THREADS" --steps "$count" --warm 3 "$@" 2>"$folder/peer.log" |
    sed -n 's/^RESULT //p' |
    jq '{tokens_per_second: .all.tok_s_real_med, step_ms: .all.step_ms_median, peak_mb: (.peak_rss_MB * 1.048576)}'
}

# Medians of the fields of several JSON objects.
medians='def median: sort | .[length / 2 | floor];
  {tokens_per_second: (map(.tokens_per_second) | median), step_ms: (map(.step_ms) | median),
   peak_mb: (map(.peak_mb) | max)}'

# $1 folder, $2 rounds, $3 updates, $4 name, $5 configuration, $6 precision, then options of the peer.
take_turns() {
  local folder=$1 count=$2 steps=$3 name=$4 configuration=$5 precision=$6
  shift 6
  : >"$folder/ours.jsonl"
  : >"$folder/peer.jsonl"
  for _ in $(seq "$count"); do
    run_tarn "$folder" "$steps" "$configuration" "$precision" >>"$folder/ours.jsonl"
    if have_peer; then run_peer "$folder" "$steps" "$precision" "$@" >>"$folder/peer.jsonl"; fi
  done
  jq -nc --arg name "$name" --slurpfile ours "$folder/ours.jsonl" --slurpfile peer "$folder/peer.jsonl" "
    def middle: $medians;"'
    {name: $name, ours: ($ours | middle), peer: (if $peer == [] then null else $peer | middle end)} |
    . + {ratio: (if .peer then .ours.tokens_per_second / .peer.tokens_per_second else null end),
         memory_ratio: (if .peer then .ours.peak_mb / .peer.peak_mb else null end)}'
}

# Step time of Model2 over Model0 against the ratio of the counted operations; $1 folder, $2 rounds, $3 updates, $4 root.
compare_freezing() {
  local precision model
  for precision in fp32 bf16; do
    : >"$1/model0.jsonl"
    : >"$1/model2.jsonl"
    for _ in $(seq "$2"); do
      for model in model0 model2; do
        run_tarn "$1" "$3" "$4/examples/multi30k/$model.yaml" "$precision" >>"$1/$model.jsonl"
      done
    done
    for model in model0 model2; do
      "$TARN" plan "$4/examples/multi30k/$model.yaml" --set "data.train=$1/train" --set "data.vocab=$1/vocab.model" \
        --json >"$1/$model.plan"
    done
    jq -nc --arg name "freezing-$precision" --slurpfile a "$1/model0.jsonl" --slurpfile b "$1/model2.jsonl" \
      --slurpfile p "$1/model0.plan" --slurpfile q "$1/model2.plan" "
      def middle: $medians;"'
      def work: .forward_flops_per_token + .backward_flops_per_token;
      {name: $name, ours: ($b | middle), peer: ($a | middle), ratio: (($b | middle).step_ms / ($a | middle).step_ms),
       counted_ratio: (($q[0] | work) / ($p[0] | work))}'
  done
}

print_table() {
  printf '%-20s %12s %12s %8s %10s %10s %8s\n' name "tokens/s" "peer" ratio "peak MB" "peer" ratio
  jq -r 'def n(d): if . == null then "-" else (. * pow(10; d) | round / pow(10; d) | tostring) end;
    select(.counted_ratio | not) |
    [.name, (.ours.tokens_per_second | n(0)), (.peer.tokens_per_second | n(0)), (.ratio | n(2)), (.ours.peak_mb | n(0)),
     (.peer.peak_mb | n(0)), (.memory_ratio | n(2))] | @tsv' "$1" |
    while IFS=$'\t' read -r a b c d e f g; do printf '%-20s %12s %12s %8s %10s %10s %8s\n' "$a" "$b" "$c" "$d" "$e" "$f" "$g"; done
  jq -r 'select(.counted_ratio) | "\(.name): step of Model2 over Model0 \(.ratio * 1000 | round / 1000), counted operations " +
    "\(.counted_ratio * 1000 | round / 1000)"' "$1"
}
