# Event files read by TensorBoard's own reader, if its package is installed (TARN_PYTHON: the Python to use).
. "$(dirname "$0")/../tiny_run.sh"
python=${TARN_PYTHON:-python3}
"$python" -c "import tensorboard" 2>/dev/null || { echo "the package tensorboard is not installed"; exit 77; }

sed -i 's/every: 20/every: 6/' model.yaml
"$TARN" train model.yaml --run run --quiet --set train.max_updates=12 --set train.threads=1 || fail "training"
"$TARN" train --resume run --quiet --set train.max_updates=24 || fail "resuming"
[ "$(ls run/events.out.tfevents.* | wc -l)" -eq 2 ] || fail "not one event file a session"
"$python" "$TARN_SOURCE_DIR/tests/golden/read_events.py" run || fail "TensorBoard reads something else than the log says"
exit 0
