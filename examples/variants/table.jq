# The table of a task, as Markdown: rows of variants.txt, the published figures beside.
include "numbers";
def map_of: map({key: .[0], value: .[1:]}) | from_entries;

($early | map({key: .[0], value: (.[1] | tonumber)}) | from_entries) as $early |
($published | map_of) as $published |
$loss[0] as $loss | $score[0] as $score |
({translation: "test_bleu", masked: "test_score", language: "test_score"}[$task]) as $key |
(if $task == "masked" then 100 else 1 end) as $unit |
({translation: "BLEU", masked: "SST-2 accuracy", language: "bits per character (less is better)"}[$task]) as $name |
(if $task == "language" then 3 else 1 end) as $digits |
($score.configurations | map({key: .name, value: .}) | from_entries) as $scores |

"# \($task), \(if $equal == "no" then "sizes as they are" elif $equal == "flops" then "equal operations" else "equal parameters" end)",
"",
"\(if $updates > 0 then "\($updates) updates" else "\($seconds) s of one core" end) for each of \($loss.configurations[0].runs | length) seeds. Early loss: of training, at a tenth of that. Final loss: least",
"validation nll. Difference to vanilla with its 95 % interval; p is corrected for all comparisons of the column (Holm). Published: steps/s,",
"final loss and WMT BLEU of Narang et al. 2021 (vanilla, 223 M parameters: 3.50, 1.838, 26.62; their rows differ in size and compute).",
"",
"| variant | frozen | parameters | MFLOP a token | updates/s | early loss | final loss | \($name) | difference | p | published |",
"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
($loss.configurations[] | . as $row | $scores[$row.name] as $s | ($s.verdicts // {})[$key] as $verdict |
  ($row.encoder.frozen + $row.decoder.frozen) as $frozen |
  [ $row.name,
    (if $frozen == 0 then "" else "\($frozen) of \($row.encoder.frozen + $row.encoder.trained + $row.decoder.frozen + $row.decoder.trained)" end),
    ([$row.runs[].parameters | select(.)][0] // null | if . == null then "-" else . / 1e6 | fixed(3) + " M" end),
    ([$row.runs[].token_operations | select(.)] | mean | if . == null then "-" else . / 1e6 | fixed(2) end),
    ([$row.runs[] | select(.budget_step and .budget_epoch and .epoch_seconds) | .budget_step / (.budget_epoch * .epoch_seconds)] | mean | fixed(1)),
    ([$row.runs[].path | $early[.] | select(.)] | mean | fixed(3)),
    ($row.best | spread(3)),
    (if $s == null then "-" else ($s[$key] | if .mean == null then . else {mean: (.mean * $unit), sd: (if .sd == null then null else .sd * $unit end)} end | spread($digits)) end),
    (if $row.baseline then "" else $verdict | change($unit; $digits) end),
    (if $row.baseline then "" else $verdict | probability end),
    ($published[$row.name] // [] | join(", "))
  ] | "| " + join(" | ") + " |"),
(if ($without | length) > 0 then "", "Not in this task:", "", ($without[] | "- \(.[0]): \(.[1])") else empty end),
([$loss.configurations[] | select((.equalized // "") | test("[.][a-z_]+="))] as $changed |
  if $changed == [] then empty else "", "What equalizing changed, the size reached and that of the base:", "", ($changed[] | "- \(.name): \(.equalized)") end),
(if ($loss.notes + $score.notes | length) > 0 then "", "Notes:", "", ($loss.notes + $score.notes | unique[] | "- \(.)") else empty end)
