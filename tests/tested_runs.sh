# Runs of translation models with tests, made without training, for tests of comparisons. Source it after helpers.sh.

# Sentences of ten words, and translations with a share of wrong words; translations with the same share have the same
# errors, so sentences alone would make every difference significant.
words() {  # SHARE: 300 lines
  awk -v share="$1" 'BEGIN { x = 42; for (s = 0; s < 300; s++) { line = ""; for (w = 0; w < 10; w++) {
    x = (x * 16807) % 2147483647; word = x % 500; x = (x * 16807) % 2147483647
    line = line " " (x / 2147483647 < share ? "wrong" word : "word" word) } print substr(line, 2) } }'
}
run() {  # VARIANT SEED SHARE LAYERS: a finished run whose test has that share of wrong words
  dir=sweep/$1/seed-$2
  mkdir -p "$dir"
  cat >"$dir/config.yaml" <<END
model: { d_model: 16 }
kinds:
  L: { heads: 2, ffn: 32 }
  R: { heads: 2, ffn: 32, frozen: yes }
data: { vocab: vocab, train: train, valid: valid }
encoder: { layers: $4 }
decoder: { layers: L }
train: { seed: $2, max_minutes: 2, max_updates: 0 }
END
  words "$3" >"$dir/test.hyp"
  "$TARN" bleu --json --reference test.en "$dir/test.hyp" >bleu.json || fail "bleu"
  "$TARN" chrf --json --reference test.en "$dir/test.hyp" >chrf.json || fail "chrf"
  both='.*"score":([0-9.e+-]+),"signature":("[^"]*").*'
  chrf=$(sed -E "s/$both/\"chrf\":\1,\"chrf_signature\":\2/" chrf.json)
  sed -E "s/$both/{\"bleu\":\1,\"signature\":\2,\"sentences\":300,\"beam\":5,\"reference\":\"test.en\",$chrf}/" bleu.json >"$dir/test.json"
  score=$(sed -E 's|\{"bleu":([0-9.]+),.*|\1|' "$dir/test.json")
  cat >"$dir/log.jsonl" <<END
{"kind":"valid","step":0,"epoch":0,"time":0,"valid_bleu":0}
{"kind":"train","step":50,"epoch":0.5,"time":60,"loss":5}
{"kind":"train","step":100,"epoch":1,"time":120,"loss":4}
{"kind":"valid","step":100,"epoch":1,"time":120,"valid_bleu":$score}
END
  cat >"$dir/result.json" <<END
{"version": "0.1.0", "status": "finished", "end": "minutes", "update": 100, "epoch": 1, "seconds": 120, "clock": "wall",
 "threads": 2, "peak_bytes": 1000000, "parameters": {"total": 30, "trained": 20, "frozen": 10, "shared_saved": 0}}
END
}

words 0 >test.en
