# Numbers in tables, for jq -L examples/variants.
def fixed($digits): if . == null then "-" else (pow(10; $digits) as $p | (. * $p | round) as $n | ($n | fabs) as $m |
  (if $n < 0 then "-" else "" end) + ($m / $p | floor | tostring) +
  (if $digits > 0 then "." + (($m % $p + $p) | tostring | .[1:]) else "" end)) end;
def spread($digits): if . == null or .mean == null then "-" elif .sd == null then .mean | fixed($digits) else "\(.mean | fixed($digits)) ± \(.sd | fixed($digits))" end;
def mean: if length == 0 then null else add / length end;
# Of a verdict of tarn compare, whose values are multiplied by $unit.
def change($unit; $digits): if . == null or .difference == null then "-" else
  (.difference * $unit | fixed($digits)) + (if .low == null then "" else " (\(.low * $unit | fixed($digits)) to \(.high * $unit | fixed($digits)))" end) end;
def probability: if . == null or .p == null then "-" elif .p < 0.001 then "< 0.001" elif .p > 0.05 and .p < 0.0505 then [.p, 0.0501] | max | fixed(4) else .p | fixed(3) end;
