# The installation for other programs: builds the examples against the installed tree only, in each of the ways in
# docs/install.md; manual pages and completion.
set -u
. "$(dirname "$0")/../helpers.sh"
[ -z "${TARN_SANITIZED:-}" ] || exit 77  # programs that use a library with sanitizers need them too
# Installs everything from the build folder; the tests were built with it.
cmake --install "$TARN_BUILD_DIR" --prefix "$PWD/first" >installed.txt 2>&1 || fail "install: $(tail -n 3 installed.txt)"
mv first there  # an installed tree may be moved
# Missing targets are built before anything is written.
awk '/--target tarn_installed/ { built = NR } /file\(INSTALL/ && !first { first = NR } END { exit !(built && first && built < first) }' \
  "$TARN_BUILD_DIR/cmake_install.cmake" || fail "cmake --install writes before it builds"
lib=$(dirname "$(echo there/lib*/libtarn.a there/lib/*/libtarn.a | tr ' ' '\n' | grep -v '\*' | head -n 1)")
export PKG_CONFIG_PATH="$PWD/$lib/pkgconfig" CMAKE_PREFIX_PATH="$PWD/there" CC=${CC:-cc}
TARN=$PWD/there/bin/tarn

# The libraries export only the functions of the public headers, and those that libtarn-lab uses from libtarn.
# exports LIBRARY HEADER...
exports() {
  local name=$1
  shift
  nm -D --with-symbol-versions --defined-only "$lib/$name.so" | awk '$2 != "A" { print $3 }' >"$name.txt"
  sed '/@TARN_PRIVATE_/d; s/@.*//' "$name.txt" | sort >exported.txt
  sed -n 's/^TARN_API .*[ *]\(tarn_[a-z0-9_]*\)(.*/\1/p' "$@" | sort >declared.txt
  diff exported.txt declared.txt || fail "$name does not export exactly what its headers declare"
  objdump -p "$lib/$name.so" | grep -q "SONAME *$name\.so\.[0-9]" || fail "$name has no versioned SONAME"
}
exports libtarn there/include/tarn/*.h
exports libtarn-lab there/include/tarn/lab/*.h
sed -n 's/@*TARN_PRIVATE_[0-9.]*$//p' libtarn.txt | LC_ALL=C sort | diff - <(grep -v '^#' "$TARN_SOURCE_DIR/cmake/libtarn_private.txt") ||
  fail "libtarn does not export exactly the private symbols of cmake/libtarn_private.txt"

for header in there/include/tarn/*.h there/include/tarn/lab/*.h; do
  name=${header#there/include/} all=${header%/*}
  case $all in */lab) all+=/lab.h ;; *) all+=/tarn.h ;; esac
  [ "$header" = "$all" ] || grep -qx "#include \"$name\"" "$all" || fail "$all leaves out $name"
done

# pkg-config, with the shared library and with the static one.
cp -r there/share/doc/tarn/examples source
module() { grep -q '"tarn/lab/' "source/$1.c" && echo tarn-lab || echo tarn; }
for name in train_model translate_lines score_text show_states forecast_series; do
  [ "$(wc -l <source/$name.c)" -le 40 ] || fail "$name.c has more than 40 lines"
  # shellcheck disable=SC2046
  $CC -std=c11 -Wall -Wextra -Werror source/$name.c $(pkg-config --cflags --libs "$(module $name)") "-Wl,-rpath,$PWD/$lib" -lm -o $name ||
    fail "pkg-config: $name"
done
! ldd translate_lines | grep -q libtarn-lab || fail "a program that translates needs libtarn-lab"
# shellcheck disable=SC2046
$CC source/forecast_series.c $(pkg-config --cflags tarn) -Wl,-Bstatic -L"$lib" -ltarn-lab -ltarn -Wl,-Bdynamic \
  $(pkg-config --static --libs tarn) -o static || fail "pkg-config --static"
./static >static.txt && ./forecast_series >shared.txt && diff static.txt shared.txt || fail "the libraries differ"
! ldd static | grep -q libtarn || fail "the static library was not linked"
grep -q '^one step ahead: NRMSE 0\.0' shared.txt || fail "forecast_series: $(cat shared.txt)"

# The examples give the same results as the program.
"$TARN" corpus --output corpus --sentences 300 --held-out 20 || fail "corpus"
"$TARN" vocab --type whitespace --size 1500 --output vocab corpus/train.de corpus/train.en >vocab.txt || fail "vocab"
for part in train valid; do
  "$TARN" prepare --vocab vocab --source corpus/$part.de --target corpus/$part.en --output $part >prepare.txt 2>&1 || fail "prepare"
  "$TARN" prepare --vocab vocab --text corpus/$part.en --output text-$part >prepare.txt 2>&1 || fail "prepare --text"
done
cat >model.yaml <<'END'
model: { d_model: 32, embeddings: all }
encoder: { layers: L }
decoder: { layers: L }
kinds: { L: { mixer: attention, heads: 2, ffn: 64 } }
data: { vocab: vocab, train: train, valid: valid }
train: { max_updates: 30, max_tokens: 500, lr: 0.005, warmup: 10, log_every: 10, threads: 1 }
valid: { every: 15, max_sentences: 5 }
END
./train_model model.yaml run train.seed=2 >train.txt || fail "train_model"
grep -q '^update 30: validation loss' train.txt || fail "train_model: $(cat train.txt)"
grep -q '^run/checkpoint_best.safetensors after 30 updates$' train.txt || fail "train_model: $(cat train.txt)"
grep -q 'seed: 2' run/config.yaml || fail "train_model leaves out its overrides"
mapfile -t lines < <(head -n 3 corpus/valid.de)
./translate_lines run "${lines[@]}" | sed 's/\t/ ||| /' >translated.txt || fail "translate_lines"
printf '%s\n' "${lines[@]}" | "$TARN" translate run --beam 4 --n-best 2 2>/dev/null |
  sed -E 's/^[0-9]+ \|\|\| //; s/([0-9]+\.[0-9]{4})[0-9]*$/\1/' >expected.txt
diff <(sed -E 's/ \|\|\| .*//' translated.txt) <(sed -E 's/ \|\|\| .*//' expected.txt) || fail "translate_lines differs"
[ "$(wc -l <translated.txt)" -eq 6 ] || fail "translate_lines: not two translations a line"
sed '/^encoder/d; s/all/decoder/; s/ train: train, valid: valid/ train: text-train, valid: text-valid/' model.yaml >lm.yaml
./train_model lm.yaml lm >/dev/null || fail "train_model of a language model"
./score_text lm corpus/valid.en >scores.txt || fail "score_text"
[ "$(wc -l <scores.txt)" -eq 21 ] || fail "score_text: not a line for each"
perplexity=$(sed -n 's/^perplexity \([0-9]*\.[0-9]\).*/\1/p' scores.txt)
"$TARN" score lm corpus/valid.en --summary-only 2>/dev/null | grep -qF "perplexity $perplexity" || fail "score_text differs"
./show_states run encoder.1 corpus/valid.de >shown.txt || fail "show_states"
"$TARN" states run encoder.1 --input corpus/valid.de --format npy --output shown --quiet || fail "tarn states"
# Norms of the rows, with rows of 32 numbers after a header of 128 bytes.
od -An -v -w128 -j128 -t f4 shown/encoder.1.npy |
  awk '{ s = 0; for (c = 1; c <= NF; c++) s += $c * $c; printf "%.3f\n", sqrt(s) }' >norms.txt
paste <(cut -f3 shown.txt) norms.txt | awk '{ if (($1 - $2) ^ 2 > 0.002 ^ 2) bad = 1 } END { exit bad || NR < 100 }' ||
  fail "show_states differs: $(paste shown.txt norms.txt | head -n 3)"
[ "$(cut -f1 shown.txt | uniq | wc -l)" -eq 20 ] || fail "show_states: not all sentences"
refuse 1 '^train_model: .*unknown key' ./train_model lm.yaml other train.nothing=1
refuse 1 '^translate_lines: .*nowhere' ./translate_lines nowhere "Ein Satz."
refuse 1 '^score_text: ' ./score_text run corpus/valid.en
refuse 1 '^show_states: .*did you mean "encoder.1"' ./show_states run encoder.11 corpus/valid.de
refuse 1 '^show_states: encoder.1.attention is not a vector' ./show_states run encoder.1.attention corpus/valid.de

# The CMake package: both libraries, and a missing version.
for static in OFF ON; do
  cmake -S source -B package-$static -G Ninja -DTARN_STATIC=$static >cmake.txt 2>&1 &&
    cmake --build package-$static --target forecast_series >>cmake.txt 2>&1 || fail "find_package: $(tail -n 20 cmake.txt)"
  package-$static/forecast_series | diff - shared.txt || fail "find_package: another result"
done
ldd package-OFF/forecast_series | grep -q "$PWD/.*libtarn" || fail "find_package links something else"
mkdir other && cp source/score_text.c other && cat >other/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(other LANGUAGES C)
find_package(tarn 99.1)
if(tarn_FOUND)
  message(FATAL_ERROR "version 99.1 is there")
endif()
find_package(tarn 0.1 COMPONENTS nonsense)
if(tarn_FOUND)
  message(FATAL_ERROR "the component nonsense is there")
endif()
find_package(tarn 0.1 COMPONENTS static REQUIRED)
END
cmake -S other -B other/build -G Ninja >cmake.txt 2>&1 || fail "find_package: $(tail -n 20 cmake.txt)"

# The sources as part of another project, configured but not built; equivalent to FetchContent.
unset CMAKE_PREFIX_PATH
cat >other/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(other LANGUAGES C)
include(FetchContent)
FetchContent_Declare(tarn SOURCE_DIR ${TARN_SOURCE})
FetchContent_MakeAvailable(tarn)
add_executable(other score_text.c)
target_link_libraries(other tarn::tarn)
END
cmake -S other -B fetched -G Ninja -DTARN_SOURCE="$TARN_SOURCE_DIR" >cmake.txt 2>&1 || fail "FetchContent: $(tail -n 20 cmake.txt)"
cmake -S source -B part -G Ninja -DTARN_STATIC=ON -DTARN_SOURCE="$TARN_SOURCE_DIR" -DTARN_INSTALL=ON \
  -DCMAKE_INSTALL_PREFIX=/opt/x -DCMAKE_INSTALL_LIBDIR=/opt/x/lib64 >cmake.txt 2>&1 ||
  fail "add_subdirectory: $(tail -n 20 cmake.txt)"
# shellcheck disable=SC2016
grep -qx 'libdir=${prefix}/lib64' part/tarn/generated/tarn.pc || fail "tarn.pc: $(head -n 3 part/tarn/generated/tarn.pc)"
ninja -C fetched CMakeFiles/other.dir/score_text.c.o >ninja.txt 2>&1 || fail "FetchContent: $(cat ninja.txt)"
ninja -C fetched -t commands other | tail -n 1 | grep -q 'libtarn\.so' || fail "FetchContent does not link the library"
ninja -C part -t commands score_text | tail -n 1 | grep -q 'libtarn\.a.*libsentencepiece.* -lstdc++' ||
  fail "add_subdirectory does not link the static library"
! ninja -C part -t targets all | grep -q 'tests/' || fail "tests are built with another project"

# Every command and every option is in the manual and in the completion of each shell.
pages=there/share/man/man1
bash_file=there/share/bash-completion/completions/tarn
zsh_file=there/share/zsh/vendor-completions/_tarn
fish_file=there/share/fish/vendor_completions.d/tarn.fish
load_bash() { . $bash_file; }  # as bash-completion does
load_bash
{
  "$TARN" --help | sed -n '/^commands:/,/^$/s/^  \([a-z0-9-]*\) .*/\1/p'
  printf 'series %s\n' generate train forecast
  printf 'recipe %s\n' list show run
} >commands.txt
while read -r command; do
  # shellcheck disable=SC2086
  "$TARN" $command --help | sed -n "s/^  \(-[a-z],\|   \) --\([a-z0-9-]*\) .*/$command \2/p"
done <commands.txt | sort >options.txt
[ "$(wc -l <options.txt)" -gt 200 ] || fail "few options: $(wc -l <options.txt)"
for command in "${!_tarn_table[@]}"; do
  for option in ${_tarn_table[$command]}; do echo "$command ${option%=*}"; done
done | sed 's/ --/ /' | sort | diff options.txt - || fail "bash has other options"
sed -n "s/^complete .*'__fish_tarn_words \(.*\)' -l \([a-z0-9-]*\) .*/\1 \2/p" $fish_file | sort |
  diff options.txt - || fail "fish has other options"
sed -n "s/^if .* == '\(.*\)' \]\]; then\$/= \1/p; s/^    '\**--\([a-z0-9-]*\)\[.*/\1/p" $zsh_file |
  awk '$1 == "=" { command = substr($0, 3); next } { print command, $1 }' | sort | diff options.txt - ||
  fail "zsh has other options"
awk '/^\.TH / { command = $2; gsub(/"|^"tarn-/, "", command); sub(/^series-/, "series ", command); sub(/^recipe-/, "recipe ", command) }
  /^\\fB\\-/ { sub(/^(\\fB\\-[a-z]\\fR, )?\\fB\\-\\-/, ""); sub(/\\fR.*/, ""); gsub(/\\/, ""); print command, $0 }' $pages/tarn-*.1 |
  sort | diff options.txt - || fail "the manual has other options"
sed -n 's/^\.BR tarn\\-\(.*\) (1)$/\1/p' $pages/tarn.1 | tr -d '\\' | sed 's/^series-/series /; s/^recipe-/recipe /' | sort |
  diff <(sort commands.txt) - || fail "tarn.1 has other commands"
complete_bash() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _tarn && echo "${COMPREPLY[*]}"; }
[ "$(complete_bash tarn tr | tr ' ' '\n' | sort | xargs)" = 'train translate' ] || fail "bash: tarn tr"
[ "$(complete_bash tarn translate --be)" = --beam ] || fail "bash: translate --be"
[ "$(complete_bash tarn series tr)" = train ] || fail "bash: series tr"
[ "$(complete_bash tarn series train --un)" = --units ] || fail "bash: series train --un"
[ "$(complete_bash tarn translate --input lm.y)" = lm.yaml ] || fail "bash: a file"
[ -z "$(complete_bash tarn translate --beam '')" ] || fail "bash: a number"
if command -v zsh >/dev/null; then zsh -n $zsh_file || fail "zsh"; fi
if command -v fish >/dev/null; then
  [ "$(fish -c ". $fish_file; complete -C 'tarn series tr'" | cut -f 1)" = train ] ||
    fail "fish: series tr"
fi
if command -v groff >/dev/null; then
  groff -man -Tutf8 -ww -z $pages/*.1 2>groff.txt && [ ! -s groff.txt ] || fail "groff: $(head -n 3 groff.txt)"
fi
refuse 1 'nowhere' "$TARN" --write-pages nowhere
