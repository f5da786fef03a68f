# The end of the scripts that run the sweeps of these folders: trains, tests and reports. Sourced with $tarn, the program; $sweep,
# the file; $1, its name, in the folder of the results; and optionally $options, an array of options of tarn sweep.

# What another sweep of this folder has trained already is not trained again.
reuse=()
for other in */sweep.json; do
  [ ! -e "$other" ] || [ "${other%/*}" = "$1" ] || reuse+=(--reuse "${other%/*}")
done
# Runs that fail, as those that diverge, are told in the report too.
code=0
"$tarn" sweep "$sweep" --output "$1" "${reuse[@]}" ${options[@]+"${options[@]}"} || code=$?
case " ${options[*]-} " in *" --dry-run "*) exit $code ;; esac
if [ $code -gt 1 ] || [ ! -e "$1/sweep.json" ]; then
  echo "run.sh: stopped in $PWD; the same command goes on" >&2
  exit $code
fi
"$tarn" report "$1" --output "report-$1"
exit $code
