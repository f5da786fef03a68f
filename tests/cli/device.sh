# --device and --comm, and the environment: the device in use, its bits, and messages if it is unsuitable.
set -u
. "$(dirname "$0")/../tiny_run.sh"
short='train.max_updates=4'

for command in translate score generate blimp test train plan sweep average "series train"; do
  # shellcheck disable=SC2086
  "$TARN" $command --help | grep -q -- '--device NAME .*: cpu, cuda or reference' || fail "$command has no --device"
  # shellcheck disable=SC2086
  refuse 2 "tarn $command: --device: there is no device \"referense\" in this program; did you mean \"reference\"?" \
    "$TARN" $command --device referense
done
refuse 2 'the communicator "gloo" is not built in: expected self, mpi, nccl' "$TARN" train model.yaml --run none --comm gloo
[ ! -e none ] || fail "a communicator that is not there leaves a run"

# The option overrides the environment, and both give the bits of that device.
"$TARN" train model.yaml --run plain --set "$short" --comm self --quiet || fail "train"
TARN_DEVICE=reference "$TARN" train model.yaml --run cpu --set "$short" --device cpu --quiet || fail "train --device cpu"
same_runs plain cpu
"$TARN" train model.yaml --run option --set "$short" --device reference --quiet || fail "train --device reference"
TARN_DEVICE=reference "$TARN" train model.yaml --run environment --set "$short" --quiet || fail "TARN_DEVICE"
same_runs option environment
cmp -s <(tensors_of plain/checkpoint_last.safetensors) <(tensors_of option/checkpoint_last.safetensors) &&
  fail "the reference has the bits of the processor's kernels"

# Messages name the requested device, and the place in the file with the unsupported setting.
sed 's/^train: {/train: { precision: bf16,/' model.yaml >bf16.yaml
refuse 1 'bf16.yaml:8: train.precision: the device reference does not compute in bf16, as cpu does' \
  "$TARN" train bf16.yaml --run none --device reference
refuse 1 'set train.precision=bf16: train.precision: the device reference does not compute in bf16' \
  "$TARN" train model.yaml --run none --device reference --set train.precision=bf16
[ ! -e none ] || fail "a device that cannot compute leaves a run"
export TARN_DEVICE=abacus
refuse 2 'TARN_DEVICE: there is no device "abacus" in this program; there are cpu, cuda, reference' "$TARN" translate plain
unset TARN_DEVICE
refuse 1 'the device reference does not compute in bf16' "$TARN" translate plain --device reference --precision bf16

# bpc needs characters: the message gives the line of the description.
"$TARN" prepare --vocab vocab --text corpus/train.en --output text >/dev/null || fail "prepare"
cat >text.yaml <<'YAML'
model: { d_model: 32 }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 64 } }
data: { vocab: vocab, train: text, valid: text }
train: { max_updates: 4, max_tokens: 500 }
valid:
  metric: bpc
YAML
refuse 2 'text.yaml:7: valid.metric: bpc needs a vocabulary of bytes or characters, and vocab is of longer tokens' \
  "$TARN" train text.yaml --run none
exit 0
