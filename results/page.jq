# The generated part of a claim's page, from `tarn compare RECORD --json`: a table of all variants, and what is decided, by
# the sweep's sequential design if it has one.
# $published: an object of figures by variant, or null; $form: "page", "summary", or "rows" for a short table of the variants
# that $rows names.
include "numbers";
def names: if . == [] then "none" else join(", ") end;

(if .configurations | any(.test_bleu.mean != null) then {key: "test_bleu", title: "Test BLEU", digits: 1, unit: 1}
 elif .configurations | any(.test_blimp.mean != null) then {key: "test_blimp", title: "BLiMP", digits: 1, unit: 1}
 elif .configurations | any(.test_score.mean != null) then {key: "test_score", title: "Test \(.test_measure)", digits: 3, unit: 1}
 else {key: "best", title: .metric, digits: 3, unit: 1} end) as $test |
.baseline as $baseline |
.sequential as $design |
# What is judged: the measure of the sequential design, else the test.
(if $design == null or $design.measure == $test.key then $test
 elif $design.measure == "best" then {key: "best", title: "Best \(.metric)", digits: 3, unit: 1}
 elif $design.measure == "exponent" then {key: "exponent", title: "Largest exponent at the end", digits: 4, unit: 1}
 else {key: $design.measure, title: "Area under \(.metric) by time", digits: 3, unit: 1} end) as $judged |
def word($word): if ($design // {}).neutral then {"better": "larger", "worse": "smaller"}[$word] else $word end;
def verdict($key): if $design then .sequential else (.verdicts // {})[$key] end;
def decided($key; $word): [.configurations[] | select(.baseline | not) | select(verdict($key).decision == $word) | .name];
def summary($key; $title; $digits):
  ([.configurations[] | verdict($key) | select(.) | .comparisons][0] // 0) as $count |
  if $count == 0 then "\($title): no verdict yet, which needs three seeds of \($baseline) and of another variant."
  else "\($title), against \($baseline) (p corrected for \($count) comparisons): better: \(decided($key; "better") | names); worse: " +
    "\(decided($key; "worse") | names); undecided: \([.configurations[] | select(.baseline | not) | select(verdict($key).decision | IN("better", "worse") | not)] | length)." end;
def minutes: if .mean then .mean /= 60 else . end | if .sd then .sd /= 60 else . end;
# Of a design: areas and times, whose tests count no looks.
def beside($design; $baseline):
  ([.configurations[] | .verdicts.aucc_mean | select(.) | .comparisons][0] // 0) as $areas |
  ([.configurations[] | .verdicts.best_seconds | select(.) | .comparisons][0] // 0) as $times |
  (if .metric == "valid/bleu" then 2 else 4 end) as $digits |
  (if .processor then " Both are of the runs on \(.processor) alone." else "" end) as $where |
  if $design == null or $design.measure == "aucc_mean" or $areas + $times == 0 then empty else
    "",
    "What the design does not judge: the area under \(.metric) over training time (AUCC, divided by T of \(.budget_seconds / 60 | fixed(1)) minutes\(if .less_is_better then ", of its negative" else "" end)) and the time to the best validation (\(.clock) clock), as differences from \($baseline) with their 95 % intervals.\($where) *runs* have an area; more area is better. The p allow for \($areas) and \($times) comparisons, but neither for how often the design looked nor for the machine's changing speed: they are hints, no verdicts.",
    "",
    "| variant | runs | AUCC/T | difference | p | to the best (min) | difference | p |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    (.configurations[] | select(.finished > 0) | .verdicts.aucc_mean as $area | .verdicts.best_seconds as $time |
      [ .name, (.aucc_mean.runs | tostring), (.aucc_mean | spread($digits)) ] +
      (if .baseline then ["", ""] else $area | if .difference == null then ["-", "-"] else [change(1; $digits), probability] end end) +
      [ (.best_seconds | minutes | spread(2)) ] +
      (if .baseline then ["", ""] else $time | if .difference == null then ["-", "-"] else [change(1 / 60; 2), probability] end end) | "| " + join(" | ") + " |")
  end;
def sequential:
  ([.configurations[] | .sequential | select(.) | .comparisons][0]) as $count |
  "\($judged.title), against \($baseline), looked at after \($design.looks | map(tostring) | join(", ")) seeds (p counts the looks, by \($design.spending) spending of \($design.alpha), and \($count) comparison\(if $count == 1 then "" else "s" end)): " +
    "\(word("better")): \(decided($judged.key; "better") | names); \(word("worse")): \(decided($judged.key; "worse") | names); " +
    (if $design.equivalence > 0 then "equivalent within \($design.equivalence): \(decided($judged.key; "equivalent") | names); " else "" end) +
    "closed without a verdict: \(decided($judged.key; "full") + decided($judged.key; "hopeless") | names); open: \(decided($judged.key; "open") | names).";
([.configurations[].runs[]] | length) as $runs |
([.configurations[].runs[] | select(.state == "finished")] | length) as $finished |
([.configurations[].runs[] | select(.state == "failed")] | length) as $failed |
# With a design what counts is how many comparisons it has settled, since the number of runs is open.
([.configurations[] | .sequential | select(.) | select(.looks > 0 or .decision != "open") | .decision]) as $looked |
(if $failed > 0 then ", \($failed) \(if $finished + $failed < $runs then "failed" else "more failed" end)" else "" end) as $lost |
# Runs that were trained for another claim with the same settings.
([.configurations[].runs[] | .reused // "" | split("/")[0] | select(. != null and . != "")]) as $from |
(if $from == [] then "" else ", \($from | length) of them trained for \($from | unique | join(", "))" end) as $shared |
(if $design then "\($finished) runs\($shared)\($lost); \($looked | map(select(. != "open")) | length) of \([.configurations[] | select(.baseline | not)] | length) comparisons are decided or closed. "
 elif $finished + $failed < $runs then "**\($finished) of \($runs) runs are finished\($shared)\($lost); this page is of these.** "
 else "\($finished) runs\($shared)\($lost). " end) as $state |
if $form == "rows" then
  ($rows | split(" ")) as $wanted | (.configurations | map(.name)) as $names |
  ($wanted - $names | if . == [] then empty else error("no variant \(join(", "))") end),
  (.configurations[] | select(.baseline) | .token_operations.mean) as $operations |
  "| variant | layers trained | frozen | parameters trained | operations |\(if $design then " seeds |" else "" end) \($judged.title) | difference from \($baseline) | \(if $design then "verdict" else "p" end) |",
  "| --- | ---: | ---: | ---: | ---: |\(if $design then " ---: |" else "" end) ---: | ---: | \(if $design then "---" else "---:" end) |",
  (([$baseline] + ($wanted - [$baseline]))[] as $name | .configurations[] | select(.name == $name) | . as $row |
    ([$row.runs[] | select(.parameters != null)][0] // null) as $run | verdict($judged.key) as $verdict |
    [ $row.name, ($row.encoder.trained + $row.decoder.trained | tostring), ($row.encoder.frozen + $row.decoder.frozen | tostring),
      (if $run then $run.trained_parameters / 1e6 | fixed(2) + " M" else "-" end),
      (if $operations and $row.token_operations.mean then "\(100 * $row.token_operations.mean / $operations | fixed(0)) %" else "-" end),
      (if $design then $row[$judged.key].runs | tostring else empty end),
      ($row[$judged.key] | spread($judged.digits)),
      (if $row.baseline then "" else $verdict | change($judged.unit; $judged.digits) end),
      (if $row.baseline then "" elif $design then $verdict.words else $verdict | probability end)
    ] | "| " + join(" | ") + " |")
elif $form == "summary" then
  $state + if $design then sequential else summary($test.key; $test.title; $test.digits) + (if $test.key != "best" then " " + summary("best"; "Best \(.metric)"; 3) else "" end) end
else
  $state + if $design then sequential else summary($test.key; $test.title; $test.digits) end,
  (if $test.key != "best" and ($design | not) then "", summary("best"; "Best \(.metric)"; 3) else empty end),
  "",
  (if $design then "Means ± standard deviations over seeds; differences from \($baseline) at the latest look with their repeated \(100 * (1 - $design.alpha)) % interval, which holds at all looks together, p as above\(if $design.equivalence > 0 then " (equivalence by two one-sided tests)" else "" end)."
   else "Means ± standard deviations over seeds; differences from \($baseline) with their 95 % interval, p as above." end),
  "",
  "| variant | frozen layers | parameters | of them frozen | runs | \(.metric) | \($test.title) |" + (if $judged.key == "exponent" then " \($judged.title) |" else "" end) + " difference | p |" + (if $design and $design.equivalence > 0 then " p of equivalence |" else "" end) + (if $design then " looks | verdict |" else "" end) + (if $published then " published |" else "" end),
  "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |" + (if $judged.key == "exponent" then " ---: |" else "" end) + (if $design and $design.equivalence > 0 then " ---: |" else "" end) + (if $design then " ---: | --- |" else "" end) + (if $published then " --- |" else "" end),
  (.configurations[] | . as $row | ([$row.runs[] | select(.parameters != null)][0] // null) as $run | verdict($judged.key) as $verdict |
    ($row.encoder.frozen + $row.decoder.frozen) as $frozen |
    [ $row.name,
      (if $frozen == 0 then "" else "\($frozen) of \($row.encoder.frozen + $row.encoder.trained + $row.decoder.frozen + $row.decoder.trained)" end),
      (if $run then $run.parameters / 1e6 | fixed(3) + " M" else "-" end),
      (if $run and $run.frozen_parameters > 0 then $run.frozen_parameters / 1e6 | fixed(3) + " M" else "" end),
      ($row.finished | tostring) + (if $row.failed > 0 then " (\($row.failed) failed)" else "" end),
      ($row.best | spread(3)),
      ($row[$test.key] | spread($test.digits)),
      (if $judged.key == "exponent" then $row.exponent | spread($judged.digits) else empty end),
      (if $row.baseline then "" else $verdict | change($judged.unit; $judged.digits) end),
      (if $row.baseline then "" elif $design and $verdict.looks == 0 then "-" else $verdict | probability end),
      (if $design and $design.equivalence > 0 then if $row.baseline then "" elif $verdict.looks == 0 then "-" else {p: $verdict.p_equal} | probability end else empty end)
    ] + (if $design then if $row.baseline then ["", ""] else ["\($verdict.looks) of \($design.looks | length)", $verdict.words] end else [] end) + (if $published then [$published[$row.name] // ""] else [] end) | "| " + join(" | ") + " |"),
  beside($design; $baseline),
  ([.notes[] | select(test("judged by the sweep.s sequential design") | not) |
    # Where curves end matters to their area alone, pages show no chrF, and questions say which checkpoint is tested.
    select($judged.key == "aucc_mean" or (test("^no run has a budget|curves end before|have a test chrF|of another checkpoint than `tarn test`") | not))] | if . == [] then empty else "", "Notes:", "", (.[] | "- \(.)") end)
end
