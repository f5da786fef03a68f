# WordPiece against the package tokenizers on every line of real corpora, if both are present (TARN_PYTHON: the Python
# to use; TARN_DATA: the folder with glue/ and newstest/).
set -u
. "$(dirname "$0")/../helpers.sh"
python=${TARN_PYTHON:-python3}
data=${TARN_DATA:-$TARN_SOURCE_DIR/../shared/data}
"$python" -c "import tokenizers" 2>/dev/null || { echo "the package tokenizers is not installed"; exit 77; }
[ -d "$data/glue" ] && [ -d "$data/newstest" ] || { echo "there are no $data/glue and $data/newstest"; exit 77; }
TOKENIZERS_PARALLELISM=false "$python" "$TARN_SOURCE_DIR/tests/golden/make_wordpiece.py" compare "$TARN" made \
  "$data"/glue/*/*.tsv "$data"/newstest/* || fail "WordPiece differs"
