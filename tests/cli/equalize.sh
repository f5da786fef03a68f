#!/usr/bin/env bash
# equalize of tarn sweep by layers and by heads: what is changed, how near it comes, and which bound is hit.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"

head='base: base.yaml\nbaseline: plain\nseeds: [1]\nequalize: { by: parameters, change: layers }\nvariants:\n  plain: {}\n'
sed -E 's/^encoder:.*/encoder: { layers: L*4 }/; s/^decoder:.*/decoder: { layers: L*2 }/' model.yaml >base.yaml
sweep() {  # VARIANT...: a dry run; what it prints is in out.txt, and its warnings in error.txt
  { printf "$head"; printf '  %s\n' "$@"; } >sweep.yaml
  "$TARN" sweep sweep.yaml --dry-run >out.txt 2>error.txt || fail "$*: $(cat error.txt)"
}
said() { grep -Eq "^$1 .*$2" out.txt || fail "$1: not \"$2\" but $(cat out.txt)"; }

# Layers: both stacks in proportion; a group as a whole; the way there is the same from above.
sweep 'narrow: { kinds.L.ffn: 16 }' 'wide: { kinds.L.ffn: 400 }' 'group: { encoder.layers: (R L)*4 }' 'same: { kinds.L.ffn: 64, train.lr: 0.1 }'
said narrow '; encoder.layers=L\*6, decoder.layers=L\*3'
said wide '; encoder.layers=L, decoder.layers=L'
said group '; encoder.layers=\(R L\)\*[12], decoder.layers=L'
said same '\(\+0\.00 %\); layers unchanged$'
# What is said is so: the size is that of the description, and no neighbour is nearer.
size_of() { "$TARN" sweep "$1" --dry-run --json 2>/dev/null | grep -o "\"name\":\"$2\",\"trained\":[0-9]*" | grep -o '[0-9]*$'; }
near=$(size_of sweep.yaml narrow)
for n in '5 2' '6 3' '7 4' '8 4'; do
  set -- $n
  printf 'base: base.yaml\nbaseline: plain\nseeds: [1]\nvariants:\n  plain: {}\n  own: { kinds.L.ffn: 16, encoder.layers: L*%s, decoder.layers: L*%s }\n' $1 $2 >own.yaml
  eval "size_$1=$(size_of own.yaml own)"
done
[ "$near" = "$size_6" ] || fail "narrow has $near parameters, not $size_6"
base=$(size_of sweep.yaml plain)
for n in 5 7 8; do
  other=size_$n
  [ $(((near - base) * (near - base))) -le $(((${!other} - base) * (${!other} - base))) ] || fail "$n layers are nearer"
done
# Which bound keeps it away.
said wide '1 % CANNOT BE MET: the least number of repetitions of the layers is 1$'
grep -q "variant wide cannot come within 1 % of the base's parameters: .* instead of .*; the least number" error.txt || fail "no warning: $(cat error.txt)"
sweep 'shared: { encoder.layers: L1*4, decoder.layers: L1*2 }' 'between: { kinds.L.ffn: 200 }'
said shared 'CANNOT BE MET: the number of repetitions of the layers does not change that$'
said between 'CANNOT BE MET: the number of repetitions of the layers is whole: [0-9]+ is [0-9.]+ % below, [0-9]+ is [0-9.]+ % above$'
# Where one stack has many more repetitions, and only the other one counts, the next numbers change nothing.
head=${head/by: parameters/by: trained}
sweep 'frozen: { encoder.layers: R*6, decoder.layers: L }' 'once: { encoder.layers: L1*6, decoder.layers: L }' 'never: { encoder.layers: R*6, decoder.layers: R*2 }'
said frozen '; encoder.layers=R\*[0-9]+, decoder.layers=L\*[0-9]+(; .*)?$'
said once '; encoder.layers=L1\*[0-9]+, decoder.layers=L\*[0-9]+(; .*)?$'
said never 'CANNOT BE MET: the number of repetitions of the layers does not change that$'
head=${head/by: trained/by: parameters}

# Heads change the size where they have a width of their own.
head=${head/layers/heads}
sweep 'thin: { kinds.L.head_width: 4 }' 'none: { kinds.L.ffn: 16 }' 'least: { kinds.L.head_width: 300 }'
said thin '; kinds.L.heads=8$'
said none 'heads unchanged; 1 % CANNOT BE MET: the number of heads does not change that$'
said least '; kinds.L.heads=1; 1 % CANNOT BE MET: the least number of heads is 1$'
"$TARN" sweep sweep.yaml --dry-run --json 2>/dev/null |
  grep -q '"name":"thin".*"equalize":"parameters".*"change":"heads","adjusted":\["kinds.L.heads=8"\],"bound":null' || fail "the JSON"

# FFN widths have bounds too.
head=${head/heads/ffn}
sweep 'deep: { encoder.layers: L*40, decoder.layers: L*2 }' 'without: { kinds.L.ffn: 0 }'
said deep '; kinds.L.ffn=1; 1 % CANNOT BE MET: its FFNs have the least width, 1$'
said without '1 % CANNOT BE MET: it has no FFN with a width to change$'

# A run has what was found, and sweep.json says it.
head=${head/ffn/layers}
sed -i 's/max_updates: 60/max_updates: 2/' base.yaml
sweep 'narrow: { kinds.L.ffn: 16 }'
"$TARN" sweep sweep.yaml --output out >out.txt 2>error.txt || fail "the sweep: $(cat error.txt)"
grep -q 'layers: L\*6' out/narrow/seed-1/config.yaml || fail "the run: $(cat out/narrow/seed-1/config.yaml)"
tr -d '\n ' <out/sweep.json | grep -q '"encoder.layers":"L\*6","decoder.layers":"L\*3","equalize":"parameters","change":"layers"' || fail "sweep.json: $(cat out/sweep.json)"
"$TARN" compare out --metric nll --json >table.json 2>error.txt || fail "compare: $(cat error.txt)"
grep -q "encoder.layers=L\*6 decoder.layers=L\*3 equalize=parameters change=layers" table.json || fail "the table does not say it: $(cat table.json)"

bad() { printf 'base: base.yaml\nbaseline: plain\nseeds: [1]\nvariants:\n  plain: {}\n  v: %s\n' "$2" >bad.yaml; refuse 2 "$1" "$TARN" sweep bad.yaml --dry-run; }
bad 'bad.yaml:6: unknown equalize.change "layer"; did you mean "layers"' '{ kinds.L.ffn: 16, equalize: { by: flops, change: layer } }'
bad 'bad.yaml:6: unknown key in equalize "with"' '{ equalize: { by: flops, with: layers } }'
bad 'bad.yaml:6: equalize: expected what is to be equal, by: parameters, trained or flops' '{ equalize: { change: layers } }'
bad 'variant v: equalize cannot change its layers, which encoder.layers_to_keep names by their numbers' '{ kinds.L.ffn: 16, encoder.layers_to_keep: [1, 2], equalize: { by: parameters, change: layers } }'
