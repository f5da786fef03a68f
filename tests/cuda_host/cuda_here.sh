# For test scripts that use the device cuda: the module for the host (README.md), in every process. Source it with:
#   . "$(dirname "$0")/../cuda_host/cuda_here.sh"
export TARN_CUDA_MODULES=$TARN_BUILD_DIR/tests/cuda_host
[ -e "$TARN_CUDA_MODULES/tarn-cuda.so" ] || { echo "$(basename "$0"): skipped: there is no module for the host"; exit 77; }
