#!/usr/bin/env bash
# Prepares BabyLM, runs one of the sweeps of this folder on it and writes its report.
#   run.sh SWEEP BABYLM GPT2 BLIMP OUTPUT [SHARE]
# BABYLM holds train/*.train and dev/*.dev, plain text; GPT2 encoder.json and vocab.bpe (or vocab.json and merges.txt), or is a
# number of pieces, which a vocabulary of the text then has (byte-pair encoding); BLIMP the paradigms, *.jsonl. Of the
# sentences every SHARE-th is taken (default 12) for training, and every 20th for validation.
# OUTPUT/data gets vocabulary and shards, OUTPUT/SWEEP the runs, OUTPUT/report-SWEEP the report. The same command goes on
# where it was stopped. With SWEEP "data" it only prepares.
set -eu
fail() { echo "run.sh: $*" >&2; exit 2; }
[ $# -eq 5 ] || [ $# -eq 6 ] || fail "usage: run.sh SWEEP BABYLM GPT2 BLIMP OUTPUT [SHARE], such as run.sh models babylm gpt2 blimp runs"
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${TARN:-$here/../../build/release/tarn}")
[ -x "$tarn" ] || fail "$tarn is no program; build it with ./run build, or name it in TARN"
case $1 in
  models | spectral-radius | topologies) sweep=$here/$1.yaml ;;
  data) sweep= ;;
  *) fail "there is no sweep $1; there are: models spectral-radius topologies" ;;
esac
folders=("$2" "$4") pieces=''
if [[ $3 =~ ^[1-9][0-9]*$ ]]; then pieces=$3; else folders+=("$3"); fi
for folder in "${folders[@]}"; do [ -d "$folder" ] || fail "$folder is no folder"; done
babylm=$(realpath "$2") gpt2=$(realpath -m "$3") blimp=$(realpath "$4") share=${6:-12}
case $share in '' | *[!0-9]* | 0*) fail "SHARE is a whole number from 1, not \"$share\"" ;; esac
mkdir -p "$5"
cd "$5"
tokens="tokens of $gpt2"
[ -z "$pieces" ] || tokens="$pieces pieces of its own"
asked="every sentence in $share of $babylm in $tokens, with the pairs of $blimp"
[ ! -s data/ready ] || [ "$(cat data/ready)" = "$asked" ] ||
  fail "$5/data was made of $(cat data/ready), not of $asked; give another OUTPUT, or remove $5/data and the sweeps beside it"
part() {  # NAME SHARE FILE...: the shard data/babylm/NAME of every SHARE-th sentence
  local name=$1 share=$2
  shift 2
  "$tarn" sentences --language en --output "data/$name.txt" "$@"
  "$tarn" split --every "$share" --first 1 --output "data/$name.part.txt" "data/$name.txt"
  "$tarn" prepare --vocab data/babylm/gpt2.vocab --text "data/$name.part.txt" --min-tokens 5 --max-tokens 127 \
    --overlong drop --output "data/babylm/$name"
  rm "data/$name.txt" "data/$name.part.txt"
}
if [ ! -e data/ready ]; then
  if [ -n "$pieces" ]; then
    "$tarn" vocab --type bpe --size "$pieces" --sentences 500000 --output data/babylm/gpt2.vocab "$babylm"/train/*.train
  else
    "$tarn" vocab --import-gpt2 "$gpt2" --output data/babylm/gpt2.vocab
  fi
  part train "$share" "$babylm"/train/*.train
  part dev 20 "$babylm"/dev/*.dev
  ln -sfn "$blimp" data/blimp
  echo "$asked" >data/ready
fi
[ "$sweep" ] || exit 0
. "$here/../sweep.sh"
