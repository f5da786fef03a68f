#!/usr/bin/env bash
# tarn prepare with a table: columns by name and by number, one sentence or two, classes and numbers, and every message.
set -euo pipefail

. "$(dirname "$0")/../helpers.sh"
printf 'a b c d e f g h "quoted" it\n' >words
"$TARN" vocab --type whitespace --size 40 --output v words

p() { "$TARN" prepare --vocab v --output out "$@"; }
export -f p
export TARN

printf 'sentence\tlabel\na b\tgood\n"quoted" c\tbad\nd e f\tgood\n' >one.tsv
p --table one.tsv --text sentence --labels label --output train >out.txt
grep -q '^labels          2 classes, the most frequent one has 66.67 % of the rows$' out.txt || fail "$(cat out.txt)"
"$TARN" inspect train >set.txt || fail "inspect"
grep -q '^classes       2: bad, good$' set.txt || fail "names of the classes: $(cat set.txt)"
"$TARN" inspect train --json | grep -q '"class_names":\["bad","good"\]' || fail "names of the classes in JSON"
grep -q '10 tokens, 0 unknown' out.txt || fail "quotes are not text: $(cat out.txt)"
# The same rows without a header, with other columns and another order of classes: class numbers follow from the names.
printf 'x\tbad\t\t"quoted" c\nx\tgood\t\td e f\r\nx\tgood\t\ta b' >number.tsv
p --table number.tsv --text 4 --labels 2 --json >out.txt
[ "$(cat out.txt)" = '{"lines":3,"rows":3,"tokens":10,"unknown":0,"longest":4,"dropped":0,"truncated":0,"left_out":0,"replaced":0,"classes":2,"most":2}' ] ||
  fail "wrong summary: $(cat out.txt)"
printf 'sentence\tlabel\n"quoted" c\tbad\nd e f\tgood\na b\tgood\n' >again.tsv
p --table again.tsv --text sentence --labels label --output again >out.txt
cmp out.tarn again.tarn || fail "columns by number give another shard than columns by name"
p --table again.tsv --text 1 --labels 2 --header >out.txt
cmp out.tarn again.tarn || fail "--header does not pass over the first line"

# A set with only one of the classes takes them from the training set.
printf 'sentence\tlabel\nc\tgood\n' >dev.tsv
p --table dev.tsv --text sentence --labels label --labels-from train --output dev --json >out.txt
grep -q '"classes":2,"most":1' out.txt || fail "classes of the training set: $(cat out.txt)"

# Two sentences: the longer one is cut first, both if both are too long.
printf 'l\ts\tt\n1\ta b c d e f\tg h\n2\ta b c d\te f g h\n' >two.tsv
p --table two.tsv --labels l --text s --pair t --max-tokens 7 --json >out.txt
grep -q '"tokens":14,"unknown":0,"longest":7,"dropped":0,"truncated":2,"left_out":6' out.txt || fail "$(cat out.txt)"
p --table two.tsv --labels l --text s --pair t --max-tokens 10 --overlong drop --json >out.txt
grep -q '"rows":2' out.txt || fail "10 tokens are not too long for 10: $(cat out.txt)"
p --table two.tsv --labels l --text s --numbers --json >out.txt
grep -q '"least":1.0,"greatest":2.0}' out.txt || fail "numbers: $(cat out.txt)"

cp again.tarn out.tarn
o() { refuse "$1" "$2" p --table "${@:3}"; cmp -s again.tarn out.tarn || fail "a failure changed the shard"; }
o 1 'one.tsv:1: there is no column "labels"; the columns are sentence, label' one.tsv --text sentence --labels labels
o 1 'one.tsv:1: there is no column 3; it has 2' one.tsv --text sentence --labels 3
o 2 'columns are counted from 1' one.tsv --text 0 --labels label
printf 'text\t0_label\na b\tgood\n"quoted" c\tbad\nd e f\tgood\n' >zero.tsv
"$TARN" prepare --vocab v --table zero.tsv --text text --labels 0_label --output zero >out.txt
cmp zero.tarn train.tarn || fail "a column whose name begins with 0"
printf 'a b\tgood\nc\t|bad\n' >bar.tsv
o 1 'bar.tsv:2: the label "|bad" begins with a bar' bar.tsv --text 1 --labels 2
o 2 'one column is given for two things' one.tsv --text label --labels label
o 2 '--labels is missing' one.tsv --text sentence
o 2 '--text is missing' one.tsv --labels label
o 2 'a table has no --threads' one.tsv --text sentence --labels label --threads 2
o 2 'a table has no --min-tokens' one.tsv --text sentence --labels label --min-tokens 2
o 2 'a table has no --source' one.tsv --text sentence --labels label --source words
refuse 2 'need --table' p --text words --labels label
printf 'a\tl\tl\nb\tc\td\n' >twice.tsv
o 1 'twice.tsv:1: 2 columns are called "l"; give its number' twice.tsv --text a --labels l
printf 'a b\t1\nc\td\t0\n' >tab.tsv
o 1 'tab.tsv:2: 3 fields, but the first line has 2: is there a tab within a field?' tab.tsv --text 1 --labels 2
printf 'a b\t1\nc\n' >few.tsv
o 1 'few.tsv:2: 1 field, but the first line has 2: fields are missing' few.tsv --text 1 --labels 2
printf 'a b\t1\nc\t \n' >empty.tsv
o 1 'empty.tsv:2: the label (column 2) is empty' empty.tsv --text 1 --labels 2
printf 'a b\t1\nc\tx\xe2\x80\xa8y\n' >end.tsv
o 1 'end.tsv:2: a label with a control character, line end or other character that head.labels cannot have (U+2028)' end.tsv --text 1 --labels 2
printf 'a b\tx\xc2\x81\nc\t1\n' >end.tsv
o 1 'end.tsv:1: a label with a control character, line end or other character that head.labels cannot have (U+0081)' end.tsv --text 1 --labels 2
printf 'a b\tx\xef\xbb\xbfy\nc\t1\n' >end.tsv
o 1 'end.tsv:1: a label with a control character, line end or other character that head.labels cannot have (U+FEFF)' end.tsv --text 1 --labels 2
printf 'a b\t1\n\t0\n' >blank.tsv
o 1 'blank.tsv:2: the text (column 1) is empty' blank.tsv --text 1 --labels 2
printf 'a b\t1\nc\t1\n' >same.tsv
o 1 'same.tsv: all 2 labels are "1", but there must be two classes at least' same.tsv --text 1 --labels 2
printf 'sentence\tlabel\nc\tgood\nd\tgoof\n' >other.tsv
o 1 'other.tsv:3: "goof" is none of the 2 classes of train; the nearest is "good"' other.tsv --text sentence --labels label --labels-from train
o 1 'one.tsv:2: "good" is not a number' one.tsv --text sentence --labels label --numbers
printf 'a\t1\nb\t1e99\n' >huge.tsv
o 1 'huge.tsv:2: "1e99" is not a number' huge.tsv --text 1 --labels 2 --numbers
o 2 'no classes that could come from another set' one.tsv --text sentence --labels label --numbers --labels-from train
o 1 'two.tsv:2: 10 tokens with all ends of sentences, but at most 9' two.tsv --labels l --text s --pair t --max-tokens 9 --overlong refuse
printf 'sentence\tlabel\n' >header.tsv
o 1 'header.tsv: no row is left of 0' header.tsv --text sentence --labels label
"$TARN" prepare --vocab v --text words --output plain >out.txt
o 1 'plain.tarn: its sentences have no classes' one.tsv --text sentence --labels label --labels-from plain

# The delimiter: given, or detected if only one yields these columns. With commas, semicolons and bars, fields with the
# delimiter are quoted.
e() { exactly "$1" "tarn prepare: $2" p --table "${@:3}"; cmp -s again.tarn out.tarn || fail "a failure changed the shard"; }
same() { p --table "$1" "${@:2}" --output found >out.txt && cmp found.tarn train.tarn || fail "$*: another shard: $(cat out.txt)"; }
printf '\xEF\xBB\xBFsentence,label\r\na b,good\r\n"""quoted"" c","bad"\r\nd e f,good\r\n' >comma.csv
same comma.csv --text sentence --labels label
same comma.csv --text 1 --labels 2 --header --delimiter comma
printf 'id;"sentence";label\n"1;2";"a b";good\n2;"""quoted"" c";bad\n3;d e f;good\n' >semicolon.csv
same semicolon.csv --text sentence --labels label
same semicolon.csv --text sentence --labels label --delimiter ';'
printf 'a b|good\n"""quoted"" c"|bad\nd e f|good\n' >bar.csv
same bar.csv --text 1 --labels 2 --delimiter bar
same one.tsv --text sentence --labels label --delimiter tab
printf 'a, b;good\nc;bad\n' >both.csv
e 1 'both.csv:1: the first line has these columns with commas and with semicolons between them; say which with --delimiter' both.csv --text 1 --labels 2
e 1 'bar.csv:1: there is no column 2; it has 1; --delimiter says what divides them' bar.csv --text 1 --labels 2
printf 'sentence,label\na, b,good\n' >inside.csv
e 1 'inside.csv:2: 3 fields, but the first line has 2: is there a comma within a field without quotes?' inside.csv --text sentence --labels label
printf 'sentence,label\n"a "b",good\n' >quote.csv
e 1 'quote.csv:2: the text (column 1) begins with a quote and must end with one, on the same line; quotes inside are doubled' quote.csv --text sentence --labels label
printf 'sentence,label\n"a\nb",good\n' >lines.csv
e 1 'lines.csv:2: 1 field, but the first line has 2: fields are missing' lines.csv --text sentence --labels label
e 2 'the fields of a table with texts are divided by a comma, a semicolon, a tab or a bar, not by " "' one.tsv --text sentence --labels label --delimiter space
e 2 '--delimiter is comma, semicolon, tab, bar or space, not "colon" (see tarn prepare --help)' one.tsv --text sentence --labels label --delimiter colon
exactly 2 'tarn prepare: --labels, --pair, --labels-from, --numbers, --per-word, --header, --delimiter and --decimal need --table (see tarn prepare --help)' p --text words --delimiter comma
# Decimal commas of labels.
printf 'a\t1,5\nb\t2\nc\t-0,123\n' >decimal.tsv
p --table decimal.tsv --text 1 --labels 2 --numbers --output found --json >out.txt
grep -q '"least":-0.123[0-9]*,"greatest":2.0}' out.txt || fail "decimal commas: $(cat out.txt)"
printf 'a\t1,5\nb\t2.5\n' >mixed.tsv
e 1 'mixed.tsv:2: "2.5" is not a number with a decimal comma (--decimal)' mixed.tsv --text 1 --labels 2 --numbers
printf 'a\t2.5\nb\t1,5\n' >mixed.tsv
e 1 'mixed.tsv:2: "1,5" is not a number with a decimal point (--decimal)' mixed.tsv --text 1 --labels 2 --numbers
printf 'a\t1,500\nb\t2\n' >thousands.tsv
e 1 'thousands.tsv:1: the comma of "1,500" may be a mark of thousands or a decimal comma; say the latter with --decimal comma' thousands.tsv --text 1 --labels 2 --numbers
p --table thousands.tsv --text 1 --labels 2 --numbers --decimal comma --output found --json >out.txt
grep -q '"least":1.5,"greatest":2.0}' out.txt || fail "a decimal comma that was said: $(cat out.txt)"
e 2 'a decimal mark is of labels that are numbers' one.tsv --text sentence --labels label --decimal comma

# Labels of words: as many as words, whatever white space separates them; truncated rows lose words with their labels.
printf 'a b c\tX Y  X\n"quoted"   it\tY X\n' >tags.tsv
p --table tags.tsv --text 1 --labels 2 --per-word --json --output tags >out.txt
[ "$(cat out.txt)" = '{"lines":2,"rows":2,"tokens":7,"unknown":0,"longest":4,"dropped":0,"truncated":0,"left_out":0,"replaced":0,"classes":2,"most":3,"words":5}' ] ||
  fail "labels of words: $(cat out.txt)"
p --table tags.tsv --text 1 --labels 2 --per-word --output found >out.txt
grep -q '^labels          2 classes, the most frequent one has 60.00 % of the words$' out.txt || fail "$(cat out.txt)"
p --table tags.tsv --text 1 --labels 2 --per-word --labels-from tags --max-tokens 4 --json --output found >out.txt
p --table tags.tsv --text 1 --labels 2 --per-word --max-tokens 4 --overlong drop --json --output found >out.txt
printf 'a b c d e\tX Y X Y X\n' >long.tsv
p --table long.tsv --text 1 --labels 2 --per-word --max-tokens 4 --json --output found 2>err.txt >out.txt
grep -q '"truncated":1,"left_out":2,.*"words":3' out.txt || fail "a truncated row: $(cat out.txt)"
printf 'a b\tX Y\nc d e\tX Y\n' >count.tsv
e 1 'count.tsv:2: 3 words, but 2 labels' count.tsv --text 1 --labels 2 --per-word
printf 'a b\tX Z\n' >other.tsv
e 1 'other.tsv:1: "Z" is none of the 2 classes of tags; the nearest is "X"' other.tsv --text 1 --labels 2 --per-word --labels-from tags
e 2 'labels of words are classes, and their rows have one text' tags.tsv --text 1 --labels 2 --per-word --numbers
