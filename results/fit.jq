# What a fit of scaling laws says of families, in a sentence for each pair, from `tarn fit RECORD --json`.
def digits: if . == null then "unknown" elif . == 0 then "0" else
  (fabs | log10 | floor) as $e | pow(10; 2 - $e) as $p | (. * $p | round) / $p | tostring end;
def bounds: if .high == null then "(\(.low | digits) or more)" else "(\(.low | digits) to \(.high | digits))" end;
def value: "\(.value | digits) \(bounds)" +
  if (.low != null and .low > 0) or (.high != null and .high < 0) then ", decided"
  elif .low == null or .high == null then "" else ", undecided" end;
. as $fit | $fit.pairs[] | . as $pair |
([$fit.laws[] | select(.family == $pair.first or .family == $pair.second) | .runs | length] | add) as $runs |
"Of \($fit.metric) over \($fit.axes | join(" and ")) in \($runs) runs, \(.second) minus \(.first) with 95 % intervals: " +
([range($fit.axes | length) as $k | "exponent of \($fit.axes[$k]) \(.exponent[$k] | value)"] | join("; ")) +
"; constant \(.offset | value)" +
(if .size.value != null then "; for the same loss at \(.at | digits) \($fit.axes[0]) \(.second) needs \(.size.value | digits) \(.size | bounds) times as many" else "" end) + "."
