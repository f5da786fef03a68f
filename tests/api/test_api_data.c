// The functions that make data: data.h, text.h, sentences.h and corpus.h.
#include "api.h"
#include "sandbox.h"
#include "tarn/data.h"
#include "tarn/lab/corpus.h"
#include "tarn/split.h"
#include "tarn/text.h"
#include "tarn/vocab.h"

static const char german[] = "der Hund sieht den Mann\nder Mann sieht den Hund\n";
static const char english[] = "the dog sees the man\nthe man sees the dog\n";
static const char table[] = "text\tlabel\tstars\nder Hund\tgood\t1.5\nder Mann\tbad\t-2\nden Hund\tgood\t3\n";

static int open_all(void **state) {
  static const char *const texts[] = {"german", "english"};
  tarn_vocab_options options;
  if (sandbox_open(state) != 0) return -1;
  sandbox_write("german", german, strlen(german));
  sandbox_write("english", english, strlen(english));
  sandbox_write("one-line", "the dog\n", 8);
  sandbox_write("broken", "the dog\nthe \xFF\n", 14);
  sandbox_write("blank", "\n\n", 2);
  sandbox_write("table", table, strlen(table));
  sandbox_write("one-class", "text\tlabel\na\tgood\nb\tgood\n", 25);
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_WHITESPACE;
  works(tarn_vocab_train("vocab", texts, 2, &options));
  return 0;
}

static tarn_prepare_options pairs(const char *output) {
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  options.vocab = "vocab";
  options.source = "german";
  options.target = "english";
  options.output = output;
  options.threads = 1;
  return options;
}

static tarn_labelled_options labels(const char *output) {
  tarn_labelled_options options;
  tarn_labelled_default(&options);
  options.vocab = "vocab";
  options.table = "table";
  options.label = "label";
  options.text = "text";
  options.output = output;
  return options;
}

static void use_tarn_prepare_default(void) {
  tarn_prepare_options options;
  memset(&options, 0xff, sizeof options);
  tarn_prepare_default(&options);
  assert_null(options.vocab);
  assert_null(options.output);
  assert_false(options.strict);
  assert_int_equal(options.min_tokens, 2);
  assert_int_equal(options.max_tokens, 1024);
  assert_int_equal(options.overlong, TARN_PREPARE_OVERLONG_TRUNCATE);
  assert_int_equal(options.stream + options.pack + options.threads + options.memory, 0);
  assert_int_equal(options.shard_bytes, TARN_PREPARE_SHARD_BYTES);
}

static void refuses_prepare(tarn_prepare_options options, tarn_status status, const char *line) {
  tarn_prepare_result result;
  refuses(tarn_prepare_run(&result, &options), status, line);
  assert_int_not_equal(access("never.tarn", F_OK), 0);
}

static void refuses_prepare_options(void) {
  const tarn_status usage = TARN_STATUS_USAGE;
  const tarn_prepare_options good = pairs("never");
  tarn_prepare_options o;
  refuses_prepare((o = good, o.vocab = NULL, o), usage, "a vocabulary is needed");
  refuses_prepare((o = good, o.target = NULL, o), usage, "either source and target text, or one text");
  refuses_prepare((o = good, o.text = "german", o), usage, "either source and target text, or one text");
  refuses_prepare((o = good, o.output = NULL, o), usage, "an output prefix is needed");
  refuses_prepare((o = good, o.output = "never/", o), usage, "names a folder");
  refuses_prepare((o = good, o.min_tokens = 1, o), usage, "the shortest sentence has 2 tokens at least");
  refuses_prepare((o = good, o.max_tokens = 1, o), usage, "no more than the longest (1)");
  refuses_prepare((o = good, o.max_tokens = (1 << 24) + 1, o), usage, "the longest sentence has 2 to");
  refuses_prepare((o = good, o.stream = 1, o), usage, "the windows of a stream have 2 to");
  refuses_prepare((o = good, o.stream = 10, o), usage, "only one text is cut into windows");
  refuses_prepare((o = good, o.pack = 1, o), usage, "packed into rows of 2 to");
  refuses_prepare((o = good, o.overlong = (tarn_prepare_overlong)3, o), usage, "there is no rule 3 for sentences");
  refuses_prepare((o = good, o.threads = -1, o), usage, "the threads are 0 to 1024");
  refuses_prepare((o = good, o.memory = 1, o), usage, "bytes of memory at least, not 1");
  refuses_prepare((o = good, o.shard_bytes = 999, o), usage, "a shard has 1000 bytes at least, not 999");
  o = good;
  o.source = o.target = NULL;
  o.text = "german";
  o.target_vocab = "vocab";
  refuses_prepare(o, usage, "one text has one vocabulary");
  o.target_vocab = NULL;
  o.stream = o.pack = 10;
  refuses_prepare(o, usage, "either cut into windows or packed into rows");
}

static void use_tarn_prepare_run(void) {
  tarn_prepare_result result;
  tarn_prepare_options options = pairs("pairs"), o;
  works(tarn_prepare_run(&result, &options));
  assert_int_equal(result.lines, 2);
  assert_int_equal(result.pairs, 2);
  assert_int_equal(result.source_tokens, 12);
  assert_int_equal(result.target_tokens, 12);
  assert_int_equal(result.source_unknown + result.target_unknown + result.empty + result.dropped, 0);
  assert_int_equal(result.parts, 1);
  options.source = options.target = NULL;
  options.text = "german";
  options.stream = 5;
  options.output = "stream";
  works(tarn_prepare_run(&result, &options));
  assert_int_equal(result.pairs, 3);
  refuses_prepare_options();
  const tarn_prepare_options good = pairs("never");
  refuses_prepare((o = good, o.vocab = "missing", o), TARN_STATUS_IO, "missing: there is no such file");
  refuses_prepare((o = good, o.vocab = "german", o), TARN_STATUS_DATA, "german: this is text");
  refuses_prepare((o = good, o.source = "missing", o), TARN_STATUS_IO, "missing: cannot read");
  refuses_prepare((o = good, o.target = "one-line", o), TARN_STATUS_DATA, "line 2 of german has no partner");
  refuses_prepare((o = good, o.target = "broken", o.strict = true, o), TARN_STATUS_DATA, "broken:2: invalid UTF-8");
  refuses_prepare((o = good, o.source = o.target = "blank", o), TARN_STATUS_DATA, "no pair is left of 2 lines");
  refuses_prepare((o = good, o.max_tokens = 3, o.overlong = TARN_PREPARE_OVERLONG_REFUSE, o), TARN_STATUS_DATA,
                  "german:1: 6 tokens with the end of sentence, but at most 3 are allowed");
  refuses_prepare((o = good, o.target = "pairs.tarn", o), TARN_STATUS_DATA, "pairs.tarn: this is");
  refuses_prepare((o = good, o.output = "german/never", o), TARN_STATUS_IO, "german");
}

static void use_tarn_labelled_default(void) {
  tarn_labelled_options options;
  memset(&options, 0xff, sizeof options);
  tarn_labelled_default(&options);
  assert_null(options.vocab);
  assert_null(options.pair);
  assert_false(options.numbers || options.header || options.strict);
  assert_int_equal(options.delimiter + options.decimal, 0);
  assert_int_equal(options.max_tokens, 1024);
  assert_int_equal(options.overlong, TARN_PREPARE_OVERLONG_TRUNCATE);
}

static void refuses_labelled(tarn_labelled_options options, tarn_status status, const char *line) {
  tarn_labelled_result result;
  refuses(tarn_labelled_prepare(&result, &options), status, line);
  assert_int_not_equal(access("never.tarn", F_OK), 0);
}

static void use_tarn_labelled_prepare(void) {
  const tarn_status usage = TARN_STATUS_USAGE, data = TARN_STATUS_DATA;
  tarn_labelled_result result;
  tarn_labelled_options options = labels("labels"), o;
  works(tarn_labelled_prepare(&result, &options));
  assert_int_equal(result.rows, 3);
  assert_int_equal(result.classes, 2);
  assert_int_equal(result.most, 2);
  options = labels("numbers");
  options.label = "stars";
  options.numbers = true;
  works(tarn_labelled_prepare(&result, &options));
  assert_true(result.least == -2 && result.greatest == 3 && result.classes == 0);
  const tarn_labelled_options good = labels("never");
  refuses_labelled((o = good, o.vocab = NULL, o), usage, "a vocabulary is needed");
  refuses_labelled((o = good, o.table = NULL, o), usage, "a table with a column of labels");
  refuses_labelled((o = good, o.text = NULL, o), usage, "a table with a column of labels");
  refuses_labelled((o = good, o.output = NULL, o), usage, "an output prefix is needed");
  refuses_labelled((o = good, o.delimiter = 'x', o), usage, "not by \"x\"");
  refuses_labelled((o = good, o.decimal = 'x', o), usage, "the decimal mark is a point or a comma");
  refuses_labelled((o = good, o.decimal = ',', o), usage, "a decimal mark is of labels that are numbers");
  refuses_labelled((o = good, o.numbers = true, o.labels_from = "labels", o), usage, "numbers have no classes");
  refuses_labelled((o = good, o.max_tokens = 3, o), usage, "the longest row has 4 to");
  refuses_labelled((o = good, o.overlong = (tarn_prepare_overlong)-1, o), usage, "there is no rule -1 for rows");
  refuses_labelled((o = good, o.label = "text", o), usage, "one column is given for two things");
  refuses_labelled((o = good, o.label = "0", o), usage, "columns are counted from 1");
  refuses_labelled((o = good, o.label = "colour", o), data, "table:1: there is no column \"colour\"");
  refuses_labelled((o = good, o.label = "4", o), data, "table:1: there is no column 4");
  refuses_labelled((o = good, o.numbers = true, o), data, "table:2: \"good\" is not a number");
  refuses_labelled((o = good, o.table = "one-class", o), data, "all 2 labels are \"good\"");
  refuses_labelled((o = good, o.labels_from = "numbers", o), data, "its sentences have no classes but numbers");
  refuses_labelled((o = good, o.labels_from = "missing", o), TARN_STATUS_IO, "missing");
  refuses_labelled((o = good, o.table = "missing", o), TARN_STATUS_IO, "missing: cannot read");
  refuses_labelled((o = good, o.vocab = "missing", o), TARN_STATUS_IO, "missing: there is no such file");
}

static void use_tarn_data_is(void) {
  tarn_prepare_result result;
  const tarn_prepare_options options = pairs("is");
  works(tarn_prepare_run(&result, &options));
  assert_true(tarn_data_is("is"));
  assert_true(tarn_data_is("is.tarn"));
  assert_false(tarn_data_is("german") || tarn_data_is("vocab") || tarn_data_is("missing") || tarn_data_is("") ||
               tarn_data_is("."));
}

static void use_tarn_data_info_open(void) {
  tarn_prepare_result result;
  tarn_data_info *info;
  const tarn_prepare_options options = pairs("told");
  works(tarn_prepare_run(&result, &options));
  works(tarn_data_info_open(&info, "told"));
  assert_string_equal(info->path, "told.tarn");
  assert_int_equal(info->rows, 2);
  assert_int_equal(info->source_tokens, 12);
  assert_int_equal(info->longest_target, 6);
  assert_int_equal(info->part_count, 1);
  assert_int_equal(info->parts[0].rows, 2);
  assert_int_equal(info->classes, 0);
  assert_false(info->text || info->windows || info->packed);
  FILE *file = fopen("told.tarn", "rb");
  char bytes[4096];
  assert_non_null(file);
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_int_equal(size, info->bytes);
  tarn_data_info_close(&info);
  sandbox_write("cut.tarn", bytes, size / 2);
  bytes[size - 1] ^= 1;
  sandbox_write("flipped.tarn", bytes, size);
  refuses(tarn_data_info_open(&info, "cut"), TARN_STATUS_DATA, "cut.tarn: ");
  assert_null(info);
  refuses(tarn_data_info_open(&info, "flipped"), TARN_STATUS_DATA, "flipped.tarn: damaged shard: its contents");
  refuses(tarn_data_info_open(&info, "missing"), TARN_STATUS_IO, "missing.tarn: there is no such file");
  refuses(tarn_data_info_open(&info, "german"), TARN_STATUS_DATA, "german: this is text");
  refuses(tarn_data_info_open(&info, ""), TARN_STATUS_USAGE, "names a folder");
  assert_null(info);
}

static void use_tarn_data_info_close(void) {
  tarn_data_info *info = NULL;
  tarn_data_info_close(&info);
  assert_null(info);
  tarn_prepare_result result;
  const tarn_prepare_options options = pairs("closed");
  works(tarn_prepare_run(&result, &options));
  works(tarn_data_info_open(&info, "closed"));
  tarn_data_info_close(&info);
  assert_null(info);
  tarn_data_info_close(&info);
  assert_null(info);
}

static void use_tarn_text_nearest(void) {
  static const char *const known[] = {"warmup", "dropout", "heads"};
  assert_ptr_equal(tarn_text_nearest("warump", known, 3), known[0]);
  assert_ptr_equal(tarn_text_nearest("head", known, 3), known[2]);
  assert_null(tarn_text_nearest("xyz", known, 3));
  assert_null(tarn_text_nearest("", known, 3));
  assert_null(tarn_text_nearest("heads", known, 0));
  assert_null(tarn_text_nearest("heads", NULL, 0));
}

static void use_tarn_text_integer(void) {
  static const char *const bad[] = {"", "+", "1.5e0", "2.0", "0x10", " 1", "1 ", "1e", "e3", "one", "15e-1"};
  int64_t value = 7;
  assert_true(tarn_text_integer(&value, "1.5e3") && value == 1500);
  assert_true(tarn_text_integer(&value, "-20e-1") && value == -2);
  assert_true(tarn_text_integer(&value, "99999999999999999999") && value == INT64_MAX);
  assert_true(tarn_text_integer(&value, "-1e999") && value == INT64_MIN);
  value = 7;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (tarn_text_integer(&value, bad[i]) || value != 7) fail_msg("\"%s\" was read as %lld", bad[i], (long long)value);
}

static void use_tarn_text_repair(void) {
  char out[16];
  tarn_text_repair(out, "a\xC3\xA4");
  assert_string_equal(out, "a\xC3\xA4");
  tarn_text_repair(out, "a\xFF\xFE");
  assert_string_equal(out, "a\xEF\xBF\xBD\xEF\xBF\xBD");
  tarn_text_repair(out, "\xE2\x82");
  assert_string_equal(out, "\xEF\xBF\xBD");
  tarn_text_repair(out, "");
  assert_string_equal(out, "");
}

static void use_tarn_text_columns(void) {
  static const char wide[] = "a\xE6\x97\xA5\xCC\x81";  // a letter, a wide one, and what combines with it
  size_t fits = 0;
  assert_int_equal(tarn_text_columns(wide, 6, SIZE_MAX, &fits), 3);
  assert_int_equal(fits, 6);
  assert_int_equal(tarn_text_columns(wide, 6, 2, &fits), 1);
  assert_int_equal(fits, 1);
  assert_int_equal(tarn_text_columns(wide, 6, 3, NULL), 3);
  assert_int_equal(tarn_text_columns(wide, 6, 0, &fits), 0);
  assert_int_equal(fits, 0);
  assert_int_equal(tarn_text_columns("", 0, 10, NULL), 0);
  assert_int_equal(tarn_text_columns("\xFF", 1, 10, NULL), 1);
}

static void use_tarn_sentences_default(void) {
  tarn_sentences_options options;
  memset(&options, 0xff, sizeof options);
  tarn_sentences_default(&options);
  assert_string_equal(options.language, "en");
  assert_false(options.wrapped || options.documents || options.strict);
}

static void use_tarn_sentences_write(void) {
  static const char raw[] = "Dr. Smith left. He came back.\n\nThe end.\n";
  static const char *const files[] = {"raw"}, *const broken[] = {"broken"}, *const missing[] = {"missing"};
  tarn_sentences_options options;
  tarn_sentences_result result;
  char written[256] = "";
  sandbox_write("raw", raw, strlen(raw));
  tarn_sentences_default(&options);
  works(tarn_sentences_write(&result, "split/sentences", files, 1, &options));
  assert_int_equal(result.lines, 3);
  assert_int_equal(result.paragraphs, 2);
  assert_int_equal(result.sentences, 3);
  FILE *file = fopen("split/sentences", "rb");
  assert_non_null(file);
  assert_in_range(fread(written, 1, sizeof written - 1, file), 1, sizeof written - 1);
  fclose(file);
  assert_string_equal(written, "Dr. Smith left.\nHe came back.\nThe end.\n");
  refuses(tarn_sentences_write(&result, "never", NULL, 0, &options), TARN_STATUS_USAGE, "at least one text file");
  refuses(tarn_sentences_write(&result, "never", missing, 1, &options), TARN_STATUS_IO, "missing: cannot read");
  refuses(tarn_sentences_write(&result, "raw/never", files, 1, &options), TARN_STATUS_IO, "raw");
  options.strict = true;
  refuses(tarn_sentences_write(&result, "never", broken, 1, &options), TARN_STATUS_DATA, "broken:2: invalid UTF-8");
  options.documents = options.wrapped = true;
  refuses(tarn_sentences_write(&result, "never", files, 1, &options), TARN_STATUS_USAGE, "an empty line ends");
  options.language = "fr";
  refuses(tarn_sentences_write(&result, "never", files, 1, &options), TARN_STATUS_USAGE, "en and de, not \"fr\"");
  options.language = NULL;
  refuses(tarn_sentences_write(&result, "never", files, 1, &options), TARN_STATUS_USAGE, "sentences need a language");
  assert_int_not_equal(access("never", F_OK), 0);
}

static void use_tarn_split_default(void) {
  tarn_split_options options;
  memset(&options, 0xff, sizeof options);
  tarn_split_default(&options);
  assert_null(options.rest);
  assert_int_equal(options.every + options.first + options.header + options.from + options.bytes, 0);
}

static void use_tarn_split_write(void) {
  static const char raw[] = "1\n2\n3\n4\n5\n";
  tarn_split_options options;
  tarn_split_result result;
  sandbox_write("numbers", raw, strlen(raw));
  tarn_split_default(&options);
  options.every = 2;
  options.rest = "parts/odd";
  works(tarn_split_write(&result, "parts/even", "numbers", &options));
  assert_int_equal(result.taken, 2);
  assert_int_equal(result.rest, 3);
  assert_int_equal(access("parts/odd", F_OK), 0);
  refuses(tarn_split_write(&result, "never", "missing", &options), TARN_STATUS_IO, "missing: cannot read");
  refuses(tarn_split_write(&result, "numbers/never", "numbers", &options), TARN_STATUS_IO, "numbers");
  options.header = -1;
  refuses(tarn_split_write(&result, "never", "numbers", &options), TARN_STATUS_USAGE, "at least 0 lines, not -1");
  options.every = -1;
  refuses(tarn_split_write(&result, "never", "numbers", &options), TARN_STATUS_USAGE, "at least 1, not -1");
  tarn_split_default(&options);
  refuses(tarn_split_write(&result, "never", "numbers", &options), TARN_STATUS_USAGE,
          "or a range of at least one byte");
  options.bytes = 4;
  works(tarn_split_write(&result, "parts/four", "numbers", &options));
  assert_int_equal(result.taken, 4);
  options.from = 10;
  refuses(tarn_split_write(&result, "never", "numbers", &options), TARN_STATUS_DATA, "ends before the range");
  assert_int_not_equal(access("never", F_OK), 0);
}

static void use_tarn_corpus_default(void) {
  tarn_corpus_options options;
  memset(&options, 0xff, sizeof options);
  tarn_corpus_default(&options);
  assert_null(options.output);
  assert_int_equal(options.seed, 1);
  assert_int_equal(options.sentences, 12000);
  assert_int_equal(options.held_out, 500);
}

static void use_tarn_corpus_write(void) {
  tarn_corpus_options options;
  tarn_corpus_default(&options);
  refuses(tarn_corpus_write(&options), TARN_STATUS_USAGE, "an output folder is needed");
  options.output = "corpus/small";
  options.sentences = 20;
  options.held_out = 5;
  works(tarn_corpus_write(&options));
  assert_int_equal(access("corpus/small/train.de", F_OK), 0);
  assert_int_equal(access("corpus/small/test.en", F_OK), 0);
  options.output = "german/never";
  refuses(tarn_corpus_write(&options), TARN_STATUS_IO, "german");
  options.output = "never";
  options.held_out = -1;
  refuses(tarn_corpus_write(&options), TARN_STATUS_USAGE, "held-out sentences is 0 to 100000, not -1");
  options.sentences = 0;
  refuses(tarn_corpus_write(&options), TARN_STATUS_USAGE, "the number of sentences is 1 to 1000000, not 0");
  options.sentences = 1000001;
  refuses(tarn_corpus_write(&options), TARN_STATUS_USAGE, "not 1000001");
  assert_int_not_equal(access("never", F_OK), 0);
}

int main(void) {
  static const char *const headers[] = {"data.h", "text.h", "split.h", "lab/corpus.h", NULL};
  static const api_use uses[] = {
      USE(tarn_prepare_default), USE(tarn_prepare_run),    USE(tarn_labelled_default), USE(tarn_labelled_prepare),
      USE(tarn_data_is),         USE(tarn_data_info_open), USE(tarn_data_info_close),  USE(tarn_text_nearest),
      USE(tarn_text_integer),    USE(tarn_text_repair),    USE(tarn_text_columns),     USE(tarn_sentences_default),
      USE(tarn_sentences_write), USE(tarn_corpus_default), USE(tarn_corpus_write),     USE(tarn_split_default),
      USE(tarn_split_write),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
