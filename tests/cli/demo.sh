#!/usr/bin/env bash
# The options of ./run demo. The demo itself is run by scripts/fresh_machine.sh.
set -euo pipefail
. "$(dirname "$0")/../helpers.sh"
demo=$(cd "$(dirname "$0")/../.." && pwd)/scripts/demo.sh

"$demo" --help >help.txt || fail "--help"
for word in --try half-random all-trained 'three minutes' build/demo; do
  grep -q -- "$word" help.txt || fail "--help does not tell of $word: $(cat help.txt)"
done
"$demo" --tri >out.txt 2>error.txt && fail "an option that is none is taken"
grep -q 'unknown option --tri' error.txt || fail "--tri: $(cat error.txt)"
"$demo" a b >out.txt 2>error.txt && fail "two folders are taken"
refuse 2 'there is no .*gone yet; ./run demo makes it' "$demo" --try half-random "$PWD/gone"
mkdir -p made/runs/half-random/seed-1 made/text full/x
refuse 2 'no model "full"; there are' "$demo" --try full "$PWD/made"
refuse 2 'full is not empty' "$demo" full

# Input goes to the selected model.
printf '#!/bin/sh\necho "$@" >asked.txt\ncat\n' >stub
chmod +x stub
echo "Ein Hase." | TARN=$PWD/stub "$demo" --try half-random "$PWD/made" >out.txt || fail "--try"
grep -qx 'Ein Hase.' out.txt || fail "--try: $(cat out.txt)"
grep -q "^translate $PWD/made/runs/half-random/seed-1" asked.txt || fail "--try asks for: $(cat asked.txt)"
