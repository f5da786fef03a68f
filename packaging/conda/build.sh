#!/usr/bin/env bash
# How conda builds tarn (meta.yaml): program and libraries into the prefix, then the Python package.
set -eu
# Its LAPACK may come without a module of pkg-config.
if ! pkg-config --exists lapack; then
  mkdir -p "$SRC_DIR/modules"
  printf '%s\n' "Name: lapack" "Description: LAPACK of conda" "Version: 3.9.0" "Libs: -L$PREFIX/lib -llapack -lblas" \
    >"$SRC_DIR/modules/lapack.pc"
  export PKG_CONFIG_PATH="$SRC_DIR/modules${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
fi
# shellcheck disable=SC2086
cmake -G Ninja -S . -B build/conda ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
  -DCMAKE_INSTALL_LIBDIR=lib -DTARN_TESTS=OFF -DTARN_CUDA=OFF -DTARN_MPI=OFF -DTARN_PYTHON="$PYTHON"
cmake --build build/conda -j "${CPU_COUNT:-2}" --target tarn_installed tarn_python
for component in program library lab dev; do cmake --install build/conda --component "$component"; done
"$PYTHON" -m pip install . --no-deps --no-build-isolation -vv
