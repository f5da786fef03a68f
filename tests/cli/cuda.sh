# What a user of the device cuda meets where something is missing or fails: one exact line, the exit code, and no run
# that was not begun; after a failure in the middle the last checkpoint is whole, and the training goes on from it on the
# card or on the processor. The cards are the module for the host (cuda_host/README.md).
set -u
. "$(dirname "$0")/../tiny_run.sh"
. "$(dirname "$0")/../cuda_host/cuda_here.sh"
sed -i 's/max_updates: 60/max_updates: 6/; s/save_every: 10/save_every: 2/; s/every: 20, max_sentences/every: 2, max_sentences/; s/max_sentences: 5/max_sentences: 2/; s/max_tokens: 500/max_tokens: 40/; s/log_every: 5/log_every: 1/; s/(R1 L1)\*2/R1 L1/; s/d_model: 32/d_model: 16/; s/ffn: 64/ffn: 16/g' model.yaml
manual='(docs/devices.md says how it is built, installed and found)'
loaded="the module of the device cuda cannot be loaded:"

# --- before anything runs: every command says the same
# ----------------------------------------------------------------
# told CODE LINE [VARIABLE=VALUE...] -- [OPTION...]: training, plan and translation are refused with this line.
told() {
  local code=$1 line=$2 settings=()
  shift 2
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  exactly "$code" "tarn plan: $line" env "${settings[@]}" "$TARN" plan model.yaml "$@"
  exactly "$code" "tarn train: $line" env "${settings[@]}" "$TARN" train model.yaml --run none "$@"
  exactly "$code" "tarn translate: $line" env "${settings[@]}" "$TARN" translate none "$@"
  exactly "$code" "tarn generate: $line" env "${settings[@]}" "$TARN" generate none "$@"
  exactly "$code" "tarn score: $line" env "${settings[@]}" "$TARN" score none "$@"
  exactly "$code" "tarn serve: $line" env "${settings[@]}" "$TARN" serve none "$@"
  [ ! -e none ] || fail "$line: a device that cannot be used leaves a run"
}
mkdir empty broken other
told 1 "$loaded there is none where TARN_CUDA_MODULES says $manual" TARN_CUDA_MODULES=empty -- --device cuda
# Without the variable: beside the program, of which this is a copy.
cp "$TARN" tarn.copy
exactly 1 "tarn plan: $loaded there is none beside the program, nor where it is installed $manual" \
  env -u TARN_CUDA_MODULES ./tarn.copy plan model.yaml --device cuda
echo 'no library' >broken/tarn-cuda.so
refuse 1 "^tarn plan: $loaded .*broken/tarn-cuda.so: " env TARN_CUDA_MODULES=broken "$TARN" plan model.yaml --device cuda
cp "$(readlink -f "$TARN_CUDA_MODULES/libnccl.so.2")" broken/tarn-cuda.so
told 1 "$loaded it is no module of tarn $manual" TARN_CUDA_MODULES=broken -- --device cuda
version=$("$TARN" --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*' | head -n 1)
LC_ALL=C sed "s/${version//./\\.}\x00/9.9.9\x00/g" "$TARN_CUDA_MODULES/tarn-cuda.so" >other/tarn-cuda.so
told 1 "$loaded it is of another version or build of tarn $manual" TARN_CUDA_MODULES=other -- --device cuda

told 1 'cuda: there is no driver of NVIDIA (expected one for CUDA 13.0 or later)' TARN_CUDA_FAULT=no_driver -- --device cuda
told 1 'cuda: the driver supports CUDA 11.4, but this build needs one for CUDA 13.0 or later' \
  TARN_CUDA_FAULT=old_driver -- --device cuda
told 1 'cuda: there is no card of NVIDIA in this machine, or this process may not use it' \
  TARN_CUDA_FAULT=no_card -- --device cuda
told 1 'cuda:0: the card cuda-host has compute capability 7.5 and no bf16; 8.0 or later is needed' \
  TARN_CUDA_FAULT=old_card -- --device cuda
told 1 'cuda:1: the card cuda-host has compute capability 7.5 and no bf16; 8.0 or later is needed' \
  TARN_CUDA_FAULT=old_card TARN_CUDA_CARDS=2 -- --device cuda:1
# One card a process.
told 1 'a process can use one card, and this one uses cuda:0: it cannot use cuda:1 too' \
  TARN_CUDA_CARDS=2 -- --device cuda:0 --device cuda:1
# The wrong word or number is a usage error.
usage() {
  exactly 2 "tarn plan: --device: $1 (see tarn plan --help)" "${@:2}" plan model.yaml --device "$device"
  exactly 2 "tarn translate: TARN_DEVICE: $1" env TARN_DEVICE="$device" "${@:2}" translate cpu
}
"$TARN" train model.yaml --run cpu --set train.max_updates=2 >/dev/null || fail "train"
device=cuda:7
usage 'there is no card cuda:7; there is 1, from cuda:0' "$TARN"
usage 'there is no card cuda:7; there are 2, from cuda:0' env TARN_CUDA_CARDS=2 "$TARN"
device=cuda:
usage 'the device "cuda:" has no number behind the colon (expected cuda:0 or the like)' "$TARN"
device=cude
usage 'there is no device "cude" in this program; did you mean "cuda"? there are cpu, cuda, reference' "$TARN"
# The environment says where a name comes from.
exactly 1 'tarn translate: TARN_DEVICE: cuda: there is no card of NVIDIA in this machine, or this process may not use it' \
  env TARN_DEVICE=cuda TARN_CUDA_FAULT=no_card "$TARN" translate cpu
# The processor asks nobody.
exactly 0 '' env TARN_CUDA_FAULT=no_driver "$TARN" plan model.yaml --device cpu

# --- too little memory is known from the plan
# -------------------------------------------------------------------------
small=TARN_CUDA_FAULT=memory:300000
large=(model.yaml --device cuda --set train.max_tokens=4000)
refuse 1 '^tarn train: this training needs [1-9][0-9]* MiB of memory of the device cuda and 0 MiB are available; activations take [0-9]* MiB of it, in proportion to train.max_tokens (4000)$' \
  env $small "$TARN" train "${large[@]}" --run none
[ ! -e none ] || fail "a training without memory leaves a run"
env $small "$TARN" plan "${large[@]}" >plan.txt 2>error.txt || fail "a plan is no training: $(cat error.txt)"
grep -q '^tarn: warning: this training needs [1-9][0-9]* MiB of memory of the device cuda and 0 MiB are available; ' error.txt ||
  fail "no warning: $(cat error.txt)"
[ "$(wc -l <error.txt)" -eq 1 ] || fail "more than one warning: $(cat error.txt)"
exactly 0 '' "$TARN" plan "${large[@]}"
refuse 1 '^tarn translate: cpu/checkpoint_best.safetensors: its model takes [0-9]* MB, and 0 MB of memory of the device cuda are available$' \
  env TARN_CUDA_FAULT=memory:1000 "$TARN" translate cpu --device cuda

# --- failures in the middle
# -------------------------------------------------------------------------------------------
"$TARN" train model.yaml --run whole --device cuda >/dev/null 2>error.txt || fail "train: $(cat error.txt)"

# resumes RUN: on the card with the bits of a training that nothing happened to; on the processor too.
resumes() {
  rm -rf moved
  cp -r "$1" moved
  exactly 0 '' "$TARN" train --resume "$1" --device cuda
  same_runs "$1" whole
  exactly 0 '' "$TARN" train --resume moved --device cpu
  "$TARN" translate moved --device cuda <few.de >moved.hyp 2>error.txt || fail "translate: $(cat error.txt)"
  [ "$(wc -l <moved.hyp)" -eq 3 ] || fail "a training that moved to the processor translates nothing"
}
head -n 3 corpus/valid.de >few.de
# middle FAULT LINES: a training with more and more before the fault, until it ends before it; each time one line of
# these, and what is saved is good. At least one training fails behind its first checkpoint.
middle() {
  local fault=$1 lines=$2 at=1 code resumed=0
  while :; do
    rm -rf hurt
    code=0
    TARN_CUDA_FAULT=$fault:$at timeout 120 "$TARN" train model.yaml --run hurt --device cuda >out.txt 2>error.txt || code=$?
    [ $code -ne 0 ] || break
    [ $code -eq 1 ] || fail "$fault:$at: exit code $code: $(cat error.txt)"
    [ "$(wc -l <error.txt)" -eq 1 ] || fail "$fault:$at: not one line: $(cat error.txt)"
    grep -qE "^tarn train: ($lines)\$" error.txt || fail "$fault:$at: another line: $(cat error.txt)"
    if [ -e hurt/checkpoint_last.safetensors ]; then
      [ $resumed -gt 0 ] || resumes hurt
      resumed=$((resumed + 1))
    fi
    at=$((2 * at + 1))
  done
  [ $at -gt 10 ] && [ $resumed -gt 0 ] || fail "$fault: only until $at, $resumed resumed"
}
what='[a-z ]*'
middle lost "cuda: $what failed: unspecified launch failure \(error 719 of the CUDA runtime\)"
middle full "cuda: out of memory: [0-9.]* MB are needed, and [0-9.]* of [0-9.]* MB are free|cuda: out of memory while $what"
exit 0
