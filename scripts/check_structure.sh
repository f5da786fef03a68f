#!/usr/bin/env bash
# Checks the rules that keep the project readable (see CONTRIBUTING.md). Prints one line per violation; exit code 1 if
# there are any.
# usage: check_structure.sh [libtarn.a]    checks symbols too if the library is given, with libtarn-lab.a in its folder
#        check_structure.sh --write        updates docs/design.md and the folders' README.md from src/rooms.txt
#        check_structure.sh --private libtarn.a    regenerates cmake/libtarn_private.txt
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/sources.sh
max_file=800
max_function=80
max_golden=5340000
breaches=0
breach() {
  echo "check_structure: $*"
  breaches=$((breaches + 1))
}
mapfile -t files < <(sources include src tools tests bench examples)

# Folders and their rules, in the order of src/rooms.txt, whose first lines explain the marks.
rooms=()
library=""
declare -A may_take includes_from library_of
while IFS=: read -r room rest; do
  case $room in
    \#* | "") continue ;;
    \[*)
      library=${room//[][]/}
      continue
      ;;
  esac
  rooms+=("$room")
  library_of[$room]=$library
  may_take[$room]=${rest%%|*}
  for word in ${may_take[$room]}; do
    case $word in
      @*) ;;
      !*) includes_from[$room]+=" ${word#!}" ;;
      *)
        includes_from[$room]+=" $word"
        [ -n "${may_take[$word]+x}" ] && [ "$word" != "$room" ] ||
          breach "src/rooms.txt: $room names $word, which does not stand above it"
        ;;
    esac
  done
done <src/rooms.txt
for room in "${rooms[@]}"; do
  for word in ${may_take[$room]}; do
    case $word in [@!]*) [ -n "${may_take[${word#[@!]}]+x}" ] || breach "src/rooms.txt: $room names $word, which is no room" ;; esac
  done
done

# The layers as shown in docs/design.md, from top to bottom.
layers() {
  local i room line library=""
  printf '    %-22s%s\n' tools/ 'the program: one file a command; takes from include/tarn/ only'
  for ((i = ${#rooms[@]} - 1; i >= 0; i--)); do
    room=${rooms[i]}
    [ "${library_of[$room]}" = "$library" ] || printf '\n    %s\n' "${library_of[$room]}"
    library=${library_of[$room]}
    line=$(grep -m 1 "^$room:" src/rooms.txt)
    printf '    %-22s%s\n' "src/$room" "${line#*| }"
  done
}
begin='<!-- src/rooms.txt, by ./run format -->' end='<!-- end of src/rooms.txt -->'
# with_layers FILE: prints the file with the current layers between the two marks.
with_layers() {
  layers | awk -v begin="$begin" -v end="$end" '
    NR == FNR { text = text $0 "\n"; next }
    $0 == end { print "\n" text; inside = 0 }
    !inside { print }
    $0 == begin { inside = 1 }' - "$1"
}
# The line of a folder's README.md that lists its allowed dependencies.
use_of() {
  local word line=""
  for word in include/tarn ${may_take[$1]}; do
    case $word in
      @*) line+=", the entries of \`src/${word#@}\` in a table" ;;
      !*) line+=", for now \`src/${word#!}\`" ;;
      include/tarn) line='May use: `include/tarn`' ;;
      *) line+=", \`src/$word\`" ;;
    esac
  done
  echo "$line."
}
if [ "${1:-}" = --write ]; then
  for room in "${rooms[@]}"; do sed -i "s|^May use:.*|$(use_of "$room")|" "src/$room/README.md"; done
  with_layers docs/design.md >docs/design.md.new && mv docs/design.md.new docs/design.md
  exit
fi

# private_symbols LIBTARN: the symbols that the folders of libtarn-lab use from libtarn, besides its public functions.
private_symbols() {
  comm -12 <(nm -P -u "${1%.a}-lab.a" | awk '$1 ~ /^tarn__/ { print $1 }' | LC_ALL=C sort -u) \
    <(nm -P --defined-only "$1" | awk '$1 ~ /^tarn__/ { print $1 }' | LC_ALL=C sort -u)
}
private=cmake/libtarn_private.txt
if [ "${1:-}" = --private ]; then
  { grep '^#' $private && private_symbols "$2"; } >$private.new && mv $private.new $private
  exit
fi
grep -qxF "$begin" docs/design.md && with_layers docs/design.md | cmp -s - docs/design.md ||
  breach "docs/design.md shows other layers than src/rooms.txt: ./run format writes them anew"

# room_of FILE: the folder of a file below src/: the longest prefix of its path listed in src/rooms.txt.
room_of() {
  local folder=${1%/*}
  while [ -z "${may_take[$folder]+x}" ] && [ "$folder" != "${folder%/*}" ]; do folder=${folder%/*}; done
  echo "$folder"
}

check_include() {  # FILE WORD: the word between the quotes of an include in FILE
  local file=$1 word=$2 folder=${2%%/*} own
  case $file in
    include/*)
      [ "$folder" = tarn ] || breach "$file: a public header includes \"$word\"; only tarn/ is allowed"
      case $file:$word in
        include/tarn/lab/*) ;;
        *:tarn/lab/*) breach "$file: a header of libtarn includes \"$word\", which is of libtarn-lab" ;;
      esac
      ;;
    tools/*)
      [ "$folder" = tarn ] || [ -f "tools/$word" ] ||
        breach "$file: includes \"$word\"; the program uses tarn/ and its own headers only" ;;
    src/*)
      own=$(room_of "${file#src/}")
      [ "$folder" = "$word" ] && [ "$word" != build_info.h ] &&
        breach "$file: includes \"$word\" without its folder (\"$own/$word\")"
      case $word in
        tarn/lab/*)
          [ "${library_of[$own]}" = libtarn-lab ] ||
            breach "$file: src/$own is of libtarn and must not include \"$word\", which is of libtarn-lab"
          return
          ;;
      esac
      case " tarn $own build_info.h ${includes_from[$own]-} " in
        *" $(room_of "$word") "*) ;;
        *) breach "$file: src/$own must not include \"$word\" (src/rooms.txt)" ;;
      esac ;;
  esac
}

while IFS=$'\t' read -r file word; do
  check_include "$file" "$word"
done < <(grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "${files[@]}" |
  sed -E 's/^([^:]+):[0-9]+:[^"]*"([^"]+)".*/\1\t\2/' | grep -E '^(include|tools|src)/')

# Every folder is listed separately, but families of kernels share one entry.
while read -r folder; do
  [ -n "${may_take[${folder#src/}]+x}" ] || [ "${folder%/*}" = src/device/cpu ] ||
    [ "${folder%/*}" = src/device/cuda ] || breach "$folder: src/rooms.txt does not name it"
done < <(printf '%s\n' "${files[@]}" | grep '^src/' | sed 's|/[^/]*$||' | sort -u)

# Every folder has a README.md: its contents, its allowed dependencies, and what to read first. The files named exist.
for room in "${rooms[@]}"; do
  readme=src/$room/README.md
  [ -f "$readme" ] || { breach "src/$room has no README.md"; continue; }
  [ "$(head -n 1 "$readme")" = "# src/$room" ] || breach "$readme: does not begin with \"# src/$room\""
  grep -qxF "$(use_of "$room")" "$readme" || breach "$readme: says other rooms than src/rooms.txt: ./run format writes them anew"
  grep -q '^Read first: ' "$readme" || breach "$readme: does not say what to read first"
  while read -r name; do
    [ -e "src/$room/$name" ] || [ -e "$name" ] || breach "$readme: there is no $name"
  done < <(grep -o '`[^`]*[./][^`]*`' "$readme" | tr -d '`')
done

# Only src/run contains the names of a run directory's files.
run_names=$(sed -n 's/^#define TARN__[A-Z_]* "\([a-z_]\{2,\}\.[a-z.]*\)".*/\1/p' src/run/names.h | sed 's/\./\\./g' | paste -s -d '|')
while read -r line; do
  breach "$line: takes the name of a file of run directories from src/run/names.h"
done < <(printf '%s\n' "${files[@]}" | grep '^src/' | grep -v '^src/run/' | xargs grep -nE "\"[^\"]*($run_names)[^\"]*\"" | sed -E 's/^([^:]*:[0-9]*):.*/\1/')

# The training loop is independent of features: outside of features/ none is named, except in the table of features.c.
features=$(sed -n 's/^const tarn__feature tarn__feature_\([a-z_]*\) = .*/\1/p' src/train/features/*.c | paste -s -d '|')
while read -r line; do
  breach "$line: src/train names a feature ($features) outside of features.c and features/"
done < <(grep -niE "$features|carried|autofreeze|expert_use|readout" src/train/*.[ch] | grep -v '^src/train/features\.c:' |
  grep -v ':#include "config/' | sed -E 's/^([^:]*:[0-9]*):.*/\1/')

# Lengths. All sources are formatted, so a function ends with a brace in the first column and begins with the last line
# before it that has a letter in the first column.
while read -r line; do breach "$line"; done < <(awk -v max_file=$max_file -v max_function=$max_function '
  function finish() { if (lines > max_file) print name ": " lines " lines, more than " max_file }
  FNR == 1 { finish(); name = FILENAME; start = 0 }
  { lines = FNR }
  /^[A-Za-z_]/ && !/^[A-Za-z_0-9]+:$/ && !/^extern "C"/ { if (!open) start = FNR; open = !/[;}][[:space:]]*(\/\/.*)?$/ }
  /^}/ {
    if (start && FNR - start + 1 > max_function && $0 == "}")
      print FILENAME ":" start ": a function of " FNR - start + 1 " lines, more than " max_function
    start = 0; open = 0
  }
  END { finish() }' "${files[@]}")

# Golden files, with the code that makes and reads them, are small enough for every copy.
golden=$(find tests/golden -type f ! -name '*.pyc' -exec cat {} + | wc -c)
[ "$golden" -lt $max_golden ] || breach "tests/golden: $golden bytes, $max_golden or more"

# File names are unique, so that a name identifies a file (except the public header of the same noun).
while read -r name; do
  breach "several files are named $name"
done < <(printf '%s\n' "${files[@]}" | grep -v '^include/' | sed 's|.*/||' | sort | uniq -d)

marks='TO''DO|FIX''ME|XX''X|HA''CK'
while read -r line; do breach "unfinished: $line"; done < <(grep -nwE "$marks" "${files[@]}")

# Each public header compiles on its own, in C and in C++.
warnings="-Wall -Wextra -Werror -Iinclude -fsyntax-only"
for header in include/tarn/*.h include/tarn/lab/*.h; do
  # shellcheck disable=SC2086
  echo "#include \"${header#include/}\"" | ${CC:-cc} -std=c11 $warnings -Wstrict-prototypes -x c - ||
    breach "$header: does not compile alone as C11"
  # shellcheck disable=SC2086
  echo "#include \"${header#include/}\"" | ${CXX:-c++} -std=c++17 $warnings -x c++ - ||
    breach "$header: does not compile alone as C++17"
  grep -q 'extern "C"' "$header" || ! grep -qE '\);$|\) TARN_CHECKED;$' "$header" ||
    breach "$header: declares functions without extern \"C\""
done
while read -r line; do
  breach "$line: a public function begins with TARN_API"
done < <(grep -nE '^(const )?[a-zA-Z_0-9]+ [*a-z ]*\**tarn_[a-z0-9_]+\(' include/tarn/*.h include/tarn/lab/*.h | grep -vE ':(TARN_API|typedef) ' | sed 's/(.*//')

# A test uses every public function from C: each has its USE() in one tests/api/test_api_*.c.
while read -r function; do
  breach "tests/api: no test uses $function(): add it to the table of a test_api_*.c"
done < <(comm -3 <(sed -n 's/^TARN_API .*[ *]\(tarn_[a-z0-9_]*\)(.*/\1/p' include/tarn/*.h include/tarn/lab/*.h | sort) \
  <(grep -ohE '\bUSE\(tarn_[a-z0-9_]+\)' tests/api/test_api_*.c | sed 's/USE(//; s/)//' | sort))

# External symbols are named tarn_ or tarn__, and their users may depend on the folder that defines them.
# cmake/libtarn_private.txt lists what libtarn-lab uses from libtarn besides its public functions.
if [ $# -gt 0 ]; then
  archives=("$1" "${1%.a}-lab.a")
  while read -r line; do breach "$line"; done < <({
    sed 's/^/room /' src/rooms.txt
    printf '%s\n' "${files[@]}" | sed 's/^/file /'
    nm -A -P "${archives[@]}" | sed 's/^/symbol /'
  } | awk -f scripts/check_symbols.awk)
  while read -r symbol; do
    breach "the libraries: the symbol $symbol does not begin with tarn_"
  done < <(nm -g --defined-only "${archives[@]}" 2>/dev/null | awk 'NF == 3 && $2 ~ /^[TDBRC]$/ && $3 !~ /^tarn_/ {print $3}')
  diff <(grep -v '^#' $private) <(private_symbols "$1") ||
    breach "$private lists other symbols than libtarn-lab takes: scripts/check_structure.sh --private $1 writes it anew"
fi

echo "check_structure: ${#files[@]} files, $breaches breaches"
[ "$breaches" -eq 0 ]
