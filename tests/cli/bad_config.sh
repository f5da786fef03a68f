# An invalid configuration gives exit code 2 and one line with file, line, key and the nearest word.
set -u
. "$(dirname "$0")/../helpers.sh"

good='model: { d_model: 64 }
encoder:
  layers: (R L)*2
decoder:
  layers: L
kinds:
  L: { heads: 4, ffn: 64 }
  R: { heads: 4, ffn: 64, frozen: yes }'

expect() {  # TEXT-OF-THE-FILE MESSAGE [OPTION...]
  printf '%s\n' "$1" >bad.yaml
  local message=$2 lines
  shift 2
  "$TARN" plan --vocab-size 100 bad.yaml "$@" >out.txt 2>error.txt </dev/null
  local code=$?
  [ $code -eq 2 ] || fail "exit code $code, expected 2, for: $message; $(cat error.txt)"
  [ ! -s out.txt ] || fail "output in spite of: $message"
  lines=$(wc -l <error.txt)
  [ "$lines" -eq 1 ] || fail "$lines lines of message: $(cat error.txt)"
  grep -qF -- "$message" error.txt || fail "no \"$message\" in: $(cat error.txt)"
}

printf '%s\n' "$good" >good.yaml
"$TARN" plan --vocab-size 100 good.yaml >out.txt 2>error.txt || fail "a good configuration: $(cat error.txt)"
grep -q frozen out.txt || fail "no plan for a good configuration"

expect "${good/frozen: yes/freeze: yes}" 'bad.yaml:8: unknown key "freeze" in kinds.R; did you mean "frozen"?'
expect "${good/heads: 4/mixer: atention}" 'bad.yaml:7: kinds.L.mixer: "atention" is not one of attention, none'
expect "${good/(R L)\*2/(R Q)*2}" 'bad.yaml:3: encoder.layers: at character 4: kind "Q" is not defined under kinds'
expect "${good/(R L)\*2/(R L*2}" 'bad.yaml:3: encoder.layers: at character 1: this parenthesis is never closed'
expect "${good/heads: 4/heads: 5}" 'bad.yaml:7: kinds.L.heads: 5 does not divide model.d_model 64'
expect "$good"$'\n''  B: { mixer: bigru, heads: 2 }' 'bad.yaml:9: kinds.B.heads: a layer with mixer bigru has no heads'
expect "${good/frozen: yes/hidden: 4}" 'bad.yaml:8: kinds.R.hidden: a layer with mixer attention has no hidden'
expect "${good/heads: 4, ffn: 64, frozen: yes/mixer: bigru, hidden: 0}" 'bad.yaml:8: kinds.R.hidden: '
expect "${good/layers: L$'\n'/layers: L B$'\n'}"$'\n''  B: { mixer: bigru, ffn: 64 }' \
  'bad.yaml:5: decoder.layers: layer 2 is of kind B, whose mixer bigru reads later tokens too'
expect "${good/decoder/decodr}" 'bad.yaml:4: unknown section "decodr"; did you mean "decoder"?'
expect "${good/d_model: 64/d_model: many}" 'bad.yaml:1: model.d_model: "many" is not an integer'
expect "${good/d_model: 64/d_model: 64, d_model: 32}" 'bad.yaml:1: key "d_model" is given twice'
expect "${good/\{ d_model/[ d_model}" 'bad.yaml:'
expect "" 'bad.yaml:1: decoder.layers is missing'
expect "$good" '--set train.updates=3: unknown key "updates" in train; did you mean "max_updates"?' --set train.updates=3
expect "$good" '--set train.lr: expected key=value' --set train.lr
expect "$good" '--set encoder.place={reservoirs: 3, of: 4}: encoder.place: 3 reservoirs cannot alternate among 4 layers' \
  --set 'encoder.place={reservoirs: 3, of: 4}'

# Training refuses before it creates anything.
"$TARN" train good.yaml --run runs/a >out.txt 2>error.txt </dev/null
[ $? -eq 2 ] || fail "training without data: $(cat error.txt)"
grep -qF 'good.yaml: data.vocab is missing' error.txt || fail "training without data: $(cat error.txt)"
[ ! -e runs ] || fail "a run directory is made for a configuration that cannot be trained"
exit 0
