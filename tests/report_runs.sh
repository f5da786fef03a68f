# For tests of reports: a sweep folder of short trainings in the current folder. It has two finished models with two
# seeds each and test scores, one with a failed result, and one that has not started.
# Source it with: . "$(dirname "$0")/../report_runs.sh"
. "$(dirname "${BASH_SOURCE[0]}")/tiny_run.sh"

half='half & <x>'  # a valid but awkward name
# One thread and CPU time, so other work on the machine has little influence.
updates=150
[ -z "${TARN_SANITIZED:-}" ] || updates=50
quick="--set train.clock=cpu --set train.log_every=25 --set train.threads=1 --quiet"
mkdir -p sweep
for seed in 1 2; do
  for name in full "$half"; do
    layers="L*4"
    [ "$name" = full ] || layers="(R1 L)*2"
    "$TARN" train model.yaml --run "sweep/$name/seed-$seed" --set "encoder.layers=$layers" --set "train.seed=$seed" \
      --set valid.at_start=yes --set valid.every=5 --set train.max_updates=$updates $quick || fail "train $name $seed"
    "$TARN" translate "sweep/$name/seed-$seed" <corpus/valid.de >"sweep/$name/seed-$seed/test.hyp" 2>translate.txt ||
      fail "translate: $(cat translate.txt)"
    "$TARN" bleu --json --reference corpus/valid.en "sweep/$name/seed-$seed/test.hyp" >bleu.json
    sed -E "s|.*\"score\":([0-9.e+-]+),\"signature\":(\"[^\"]*\").*|{\"bleu\":\1,\"chrf\":1.5,\"signature\":\2,\"seconds\":1,\"checkpoint\":\"checkpoint_best.safetensors\",\"sentences\":$(wc -l <corpus/valid.en),\"beam\":5,\"source\":\"$PWD/corpus/valid.de\",\"reference\":\"$PWD/corpus/valid.en\"}|" \
      bleu.json >"sweep/$name/seed-$seed/test.json"
  done
done
"$TARN" train model.yaml --run sweep/broken/seed-1 --set train.lr=0.5 --set train.max_updates=10 --set valid.every=2 \
  --set valid.at_start=yes $quick || fail "train broken"
sed -i 's/"status": *"finished"/"status": "failed", "message": "the loss is not a <number>"/; s/"end": *"updates"/"was": "updates"/' \
  sweep/broken/seed-1/result.json
# T̂ is two thirds of the shortest training, so every run has validations before and after it, on any machine.
budget=$(tail -q -n 1 sweep/{full,"$half"}/seed-*/log.jsonl | sed 's/.*"time":\([0-9.e+-]*\).*/\1/' | sort -g |
  awk 'NR == 1 { printf "%.3g", $1 * 2 / 3 }')
cat >sweep/sweep.json <<END
{"name": "Frozen & <shared>", "baseline": "full", "budget_seconds": $budget, "clock": "cpu", "seeds": [1, 2],
 "variants": [{"name": "full", "set": {}}, {"name": "$half", "set": {"encoder.layers": "(R1 L)*2"}, "equalized": {"kinds.L.ffn": 65}},
              {"name": "broken", "set": {"train.lr": 1e30}}, {"name": "later", "set": {"train.lr": 0.1}}]}
END
