#!/usr/bin/env bash
# Tests the Python package of this build (cmake/python.cmake) with the Python that was found when it was configured.
# Skips where that has not what the package needs; parts of it are skipped without scikit-learn, pandas, nbclient and
# ipykernel, matplotlib or mypy.
python=${TARN_PYTHON:-python3}
skip() {
  echo "skipped: $1; -DTARN_PYTHON names another Python, such as that of a virtual environment (docs/python.md)"
  exit 77
}
"$python" -c 'import numpy, pycparser, pytest' 2>/dev/null || skip "$python does not find numpy, pycparser and pytest"
[ -e "$TARN_BUILD_DIR/python/tarn/_binding.py" ] || skip "the package was not built"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
PYTHONPATH="$TARN_BUILD_DIR/python" PYTHONDONTWRITEBYTECODE=1 \
  "$python" -m pytest -q -rs --basetemp "$folder/pytest" -p no:cacheprovider "$TARN_SOURCE_DIR/tests/python"
