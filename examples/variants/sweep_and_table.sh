# The second half of run.sh: trains, tests, and writes the table. Sourced with $tarn, $here, $task, $equal, $seconds, $rows
# and $options, in the folder of the results.

# stopped CODE FOLDER: whether a sweep was stopped before its end; runs that failed are told in the table too.
stopped() { [ "$1" -gt 1 ] || [ ! -e "$2/sweep.json" ]; }
code=0
"$tarn" sweep "$task.sweep.yaml" --output "$task" ${options[@]+"${options[@]}"} || code=$?
[ ${#options[@]} -eq 0 ] || exit $code
! stopped $code "$task" || { echo "run.sh: stopped in $PWD; the same command goes on" >&2; exit $code; }

# The bodies are fine-tuned with the sizes that they were pre-trained with, each from the body of its own seed.
scored=$task
if [ "$task" = masked ]; then
  if [ "$updates" -gt 0 ]; then steps=$((updates / 2 + 1)); else steps=$((4 * seconds)); fi
  {
    printf '# Made by run.sh.\nbase: sst2.base.yaml\nbaseline: vanilla\nseeds: [1, 2, 3]\nparallel: 2\nthreads: 1\n'
    printf 'set: { train.max_updates: %s, train.warmup: %s, valid.every: %s }\n' $steps $((steps / 8 + 1)) $((steps / 4 + 1))
    printf 'test: { labelled: data-masked/sst2-dev }\nvariants:\n'
    jq -r '.variants[] | [.name, (.equalized // {} | to_entries | map(select(.key | contains(".")) | "\(.key): \(.value)") | join(", "))] | @tsv' masked/sweep.json |
      while IFS=$'\t' read -r name sizes; do
        line=$(grep -m 1 "^  $name: {" masked.sweep.yaml) || continue
        line=${line% \}}
        line=$(sed -E 's/ model[.]adaptive_softmax_cutoff: \[[^]]*\],//' <<<"$line")  # of the words that it predicted
        for key in $(grep -o '[A-Za-z]*[.][A-Za-z._]*:' <<<"$sizes"); do  # what equalizing changed takes the row's place
          line=$(sed -E "s/ ${key//./[.]} [^,]*,?//; s/,\$//" <<<"$line")
        done
        [ "${line: -1}" = '{' ] || line=$line,
        ls masked/"$name"/seed-*/checkpoint_best.safetensors >/dev/null 2>&1 || continue  # no body was learnt
        echo "$line ${sizes:+$sizes, }train.init_from: \"masked/$name/seed-{seed}\" }"
      done
  } >sst2.sweep.yaml
  sed -e 's/^model:/model:\n  task: classification/' -e 's|^data:.*|data: { vocab: data-masked/vocab.model, train: data-masked/sst2-train, valid: data-masked/sst2-valid }|' \
    -e 's/^valid:.*/valid: { metric: accuracy }/' -e 's/max_tokens: 1024/max_tokens: 2048/' -e 's/lr: 0.002/lr: 0.0005/' "$here/masked.yaml" >sst2.base.yaml
  printf 'head: { pool: cls, hidden: 128 }\n' >>sst2.base.yaml
  "$tarn" sweep sst2.sweep.yaml --output sst2 || code=$?
  ! stopped $code sst2 || { echo "run.sh: stopped in $PWD; the same command goes on" >&2; exit $code; }
  scored=sst2
fi

# --- the table ------------------------------------------------------------------------------------------------------------

# The loss of training at a tenth of the time or of the updates, a line a run: folder and value.
for log in "$task"/*/seed-*/log.jsonl; do
  jq -r --arg run "${log%/log.jsonl}" --argjson seconds "$seconds" --argjson updates "$updates" -n \
    'def early: if $updates > 0 then 10 * .step >= $updates else 10 * .time >= $seconds end;
     [inputs | select(.kind == "train" and .nll != null and early)][0] | select(.) | [$run, .nll] | @tsv' "$log"
done >"$task.early.tsv"
"$tarn" compare "$task" --metric nll --json >"$task.loss.json" || exit 1
"$tarn" compare "$scored" --json >"$task.score.json" || exit 1
awk -F'|' '!/^#/ && NF >= 4 { gsub(/[ \t]+$/, "", $1); gsub(/^ +| +$/, "", $2); gsub(/ +/, "\t", $2); if ($2) print $1 "\t" $2 }' "$here/variants.txt" >"$task.published.tsv"
awk -F'|' -v task="$task" '!/^#/ && $5 ~ task ":" { gsub(/[ \t]+$/, "", $1); sub(".*" task ": ", "", $5); sub(/;.*/, "", $5); print $1 "\t" $5 }' \
  "$here/variants.txt" >"$task.without.tsv"
tsv() { jq -R -s 'split("\n") | map(select(. != "") | split("\t"))' "$1"; }
jq -r -n --arg task "$task" --arg equal "$equal" --argjson seconds "$seconds" --argjson updates "$updates" --slurpfile loss "$task.loss.json" --slurpfile score "$task.score.json" \
  --argjson early "$(tsv "$task.early.tsv")" --argjson published "$(tsv "$task.published.tsv")" --argjson without "$(tsv "$task.without.tsv")" \
  -L "$here" -f "$here/table.jq" >"table-$task.md.new"
mv "table-$task.md.new" "table-$task.md"
"$tarn" report "$scored" --output "report-$task"
echo "$PWD/table-$task.md"
exit $code
