// The functions of vocab.h, with a vocabulary of each kind.
#include "tarn/vocab.h"

#include "api.h"
#include "base/file.h"
#include "base/memory.h"
#include "sandbox.h"
#include "text/vocab_formats.h"

#define GOLDEN TARN_SOURCE_DIR "/tests/golden/"
#define GPT2 GOLDEN "gpt2_toy"
#define BERT GOLDEN "wordpiece_toy"
#define MARIAN GOLDEN "marian_model/swish"

static const char text[] = "der Hund sieht den Mann\nder Mann sieht den Hund\n";
static const char *const texts[] = {"text"};
// One vocabulary of each kind that the group opens.
static tarn_vocab *words, *bytes, *gpt2, *roberta, *wordpiece, *marian;

static void train_as(const char *output, tarn_vocab_type type) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = type;
  works(tarn_vocab_train(output, texts, type == TARN_VOCAB_TYPE_BYTE ? 0 : 1, &options));
}

// GPT-2's toy with the tokens of RoBERTa behind its own, in the folder "roberta".
static void make_roberta(void) {
  static char tokens[1 << 16], merges[1 << 16];
  FILE *file = fopen(GPT2 "/vocab.json", "rb");
  assert_non_null(file);
  assert_in_range(fread(tokens, 1, sizeof tokens - 100, file), 1, sizeof tokens - 101);
  fclose(file);
  strcpy(strrchr(tokens, '}'), ", \"<s>\": 640, \"</s>\": 641, \"<mask>\": 642, \"<pad>\": 643}");
  file = fopen(GPT2 "/merges.txt", "rb");
  assert_non_null(file);
  const size_t size = fread(merges, 1, sizeof merges, file);
  fclose(file);
  assert_int_equal(mkdir("roberta", 0700), 0);
  sandbox_write("roberta/vocab.json", tokens, strlen(tokens));
  sandbox_write("roberta/merges.txt", merges, size);
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  sandbox_write("text", text, strlen(text));
  sandbox_write("empty", "", 0);
  sandbox_write("damaged", "tarn-vocab whitespace 1\nlowercase 0\nsize 5\n<unk>\n<s>\n", 53);
  train_as("words", TARN_VOCAB_TYPE_WHITESPACE);
  train_as("bytes", TARN_VOCAB_TYPE_BYTE);
  make_roberta();
  works(tarn_vocab_open(&words, "words"));
  works(tarn_vocab_open(&bytes, "bytes"));
  works(tarn_vocab_open(&gpt2, GPT2));
  works(tarn_vocab_open(&roberta, "roberta"));
  works(tarn_vocab_open(&wordpiece, BERT));
  works(tarn__vocab_open_marian(&marian, MARIAN, false));
  return 0;
}

static int close_all(void **state) {
  tarn_vocab **const all[] = {&words, &bytes, &gpt2, &roberta, &wordpiece, &marian};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn_vocab_close(all[i]);
  return sandbox_close(state);
}

// The id of a token, or -1.
static int32_t find(const tarn_vocab *vocab, const char *piece) {
  for (int32_t id = 0; id < tarn_vocab_size(vocab); id++)
    if (strcmp(tarn_vocab_piece(vocab, id), piece) == 0) return id;
  return -1;
}

static void same_bytes(const tarn_vocab *vocab, const char *path) {
  tarn_vocab *other;
  works(tarn_vocab_open(&other, path));
  assert_string_equal(tarn_vocab_hash(vocab), tarn_vocab_hash(other));
  tarn_vocab_close(&other);
}

static void use_tarn_vocab_normalization_name(void) {
  assert_string_equal(tarn_vocab_normalization_name(TARN_VOCAB_NORMALIZATION_AUTO), "auto");
  assert_string_equal(tarn_vocab_normalization_name(TARN_VOCAB_NORMALIZATION_IDENTITY), "identity");
  assert_string_equal(tarn_vocab_normalization_name((tarn_vocab_normalization)TARN_VOCAB_NORMALIZATION_COUNT), "");
  assert_string_equal(tarn_vocab_normalization_name((tarn_vocab_normalization)-1), "");
}

static void use_tarn_vocab_default(void) {
  tarn_vocab_options options;
  memset(&options, 0xff, sizeof options);
  tarn_vocab_default(&options);
  assert_int_equal(options.type, TARN_VOCAB_TYPE_BPE);
  assert_int_equal(options.size, 8000);
  assert_true(options.character_coverage == 0);
  assert_false(options.byte_fallback || options.lowercase || options.mask_symbols || options.allow_loss);
  assert_int_equal(options.minimum_count, 1);
  assert_int_equal(options.sentences, 0);
  assert_int_equal(options.threads, 2);
  assert_int_equal(options.memory, 0);
  assert_int_equal(options.normalization, TARN_VOCAB_NORMALIZATION_AUTO);
  assert_null(options.report);
}

static void refuses_training(const char *file, tarn_vocab_options options, tarn_status status, const char *line) {
  refuses(tarn_vocab_train("never", &file, file ? 1 : 0, &options), status, line);
  assert_int_not_equal(access("never", F_OK), 0);
}

static void refuses_options(void) {
  const tarn_status usage = TARN_STATUS_USAGE;
  tarn_vocab_options fresh;
  tarn_vocab_default(&fresh);
  refuses_training(NULL, fresh, usage, "needs at least one text file");
  tarn_vocab_options o = fresh;
  o.type = (tarn_vocab_type)99;
  refuses_training("text", o, usage, "there is no type 99");
  o = fresh;
  o.size = 3;
  refuses_training("text", o, usage, "is 4 to 1000000, not 3");
  o.mask_symbols = true;
  o.size = 6;
  refuses_training("text", o, usage, "with <cls>, <sep> and <mask> is 7 to");
  o = fresh;
  o.character_coverage = 0.5;
  refuses_training("text", o, usage, "the character coverage is 0.98 to 1");
  o = fresh;
  o.minimum_count = 0;
  refuses_training("text", o, usage, "the minimum count is at least 1");
  o = fresh;
  o.sentences = 100;
  refuses_training("text", o, usage, "draws at least 101 sentences");
  o = fresh;
  o.threads = 1025;
  refuses_training("text", o, usage, "the number of threads is 1 to 1024");
  o = fresh;
  o.memory = TARN_VOCAB_LEAST_MEMORY - 1;
  refuses_training("text", o, usage, "bytes of memory at least");
  o = fresh;
  o.normalization = (tarn_vocab_normalization)TARN_VOCAB_NORMALIZATION_COUNT;
  refuses_training("text", o, usage, "there is no normalization 8");
  o.normalization = TARN_VOCAB_NORMALIZATION_NFKC;
  o.lowercase = true;
  refuses_training("text", o, usage, "lower case is a normalization itself");
  o = fresh;
  o.type = TARN_VOCAB_TYPE_BYTE;
  refuses_training("text", o, usage, "it takes no text");
  o.lowercase = true;
  refuses_training(NULL, o, usage, "it cannot fold the case");
  o = fresh;
  o.type = TARN_VOCAB_TYPE_CHAR;
  o.sentences = 101;
  refuses_training("text", o, usage, "take a number of sentences");
}

static void use_tarn_vocab_train(void) {
  tarn_vocab_report report;
  tarn_vocab_options options;
  tarn_vocab *vocab;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_UNIGRAM;
  options.size = 19;
  options.report = &report;
  works(tarn_vocab_train("folder/pieces", texts, 1, &options));
  works(tarn_vocab_open(&vocab, "folder/pieces"));
  assert_int_equal(tarn_vocab_size(vocab), 19);
  tarn_vocab_close(&vocab);
  assert_int_equal(report.lines, 2);
  assert_int_equal(report.bytes, strlen(text) - 2);
  assert_int_equal(report.used_bytes, report.bytes);
  assert_int_equal(report.normalization, TARN_VOCAB_NORMALIZATION_NMT_NFKC);
  refuses_options();
  refuses_training("missing", options, TARN_STATUS_IO, "missing");
  refuses_training("empty", options, TARN_STATUS_DATA, "there is no text to train a vocabulary on");
  refuses_training("words", options, TARN_STATUS_DATA, "words: this is");
  options.size = 8000;
  refuses_training("text", options, TARN_STATUS_DATA, "--size 8000 is too high");
  sandbox_write("invalid", "der \xFF\xFE Mann\n", 12);
  options.size = 20;
  refuses_training("invalid", options, TARN_STATUS_DATA, "% of the");
  options.type = TARN_VOCAB_TYPE_BYTE;
  options.size = 8000;
  refuses(tarn_vocab_train("text/vocab", NULL, 0, &options), TARN_STATUS_IO, "text");
}

static void use_tarn_vocab_import_gpt2(void) {
  works(tarn_vocab_import_gpt2("made/gpt2", GPT2));
  same_bytes(gpt2, "made/gpt2");
  works(tarn_vocab_import_gpt2("made/gpt2", GPT2 "/merges.txt"));
  same_bytes(gpt2, "made/gpt2");
  refuses(tarn_vocab_import_gpt2("never", "text"), TARN_STATUS_USAGE, "text: GPT-2's vocabulary is a folder");
  refuses(tarn_vocab_import_gpt2("never", "missing"), TARN_STATUS_USAGE, "missing: GPT-2's vocabulary is a folder");
  refuses(tarn_vocab_import_gpt2("never", "missing/vocab.json"), TARN_STATUS_IO, "missing/vocab.json: cannot read");
  assert_int_equal(mkdir("half", 0700), 0);
  sandbox_write("half/vocab.json", "{\"a\": 1}", 8);
  refuses(tarn_vocab_import_gpt2("never", "half"), TARN_STATUS_DATA, "\"a\" has the id 1, but the ids of 1 tokens");
  refuses(tarn_vocab_import_gpt2("text/never", GPT2), TARN_STATUS_IO, "text");
}

static void use_tarn_vocab_import_tokenizer(void) {
  tarn_vocab *vocab;
  mkdir("tokenizer", 0700);
  char *json;
  size_t size;
  works(tarn__file_read(GOLDEN "tokenizers/bytes.json", &json, &size));
  sandbox_write("tokenizer/tokenizer.json", json, size);
  tarn__free(json);
  refuses(tarn_vocab_import_tokenizer("never", "tokenizer"), TARN_STATUS_DATA, "there is no \"eos_token\"");
  sandbox_write("tokenizer/tokenizer_config.json", "{\"eos_token\": \"</s>\"}", 21);
  works(tarn_vocab_import_tokenizer("bpe", "tokenizer"));
  works(tarn_vocab_open(&vocab, "bpe"));
  assert_string_equal(tarn_vocab_kind(vocab), "BPE");
  tarn_vocab_close(&vocab);
  refuses(tarn_vocab_import_tokenizer("never", "missing"), TARN_STATUS_USAGE, "missing: a tokenizer is a file");
  refuses(tarn_vocab_import_tokenizer("text/never", "tokenizer"), TARN_STATUS_IO, "text");
}

static void use_tarn_vocab_import_wordpiece(void) {
  tarn_vocab *vocab;
  works(tarn_vocab_import_wordpiece("made/wordpiece", BERT, TARN_WORDPIECE_CASE_AS_SAID));
  same_bytes(wordpiece, "made/wordpiece");
  works(tarn_vocab_import_wordpiece("made/cased", BERT "/vocab.txt", TARN_WORDPIECE_CASED));
  works(tarn_vocab_open(&vocab, "made/cased"));
  assert_string_equal(tarn_vocab_normalization_of(vocab), "BERT");
  tarn_vocab_close(&vocab);
  refuses(tarn_vocab_import_wordpiece("never", "text", TARN_WORDPIECE_CASED), TARN_STATUS_USAGE,
          "text: BERT's vocabulary is a file vocab.txt");
  refuses(tarn_vocab_import_wordpiece("never", GPT2, TARN_WORDPIECE_CASED), TARN_STATUS_USAGE, "vocab.txt");
  refuses(tarn_vocab_import_wordpiece("never", "missing/vocab.txt", TARN_WORDPIECE_CASED), TARN_STATUS_IO,
          "missing/vocab.txt: cannot read");
  refuses(tarn_vocab_import_wordpiece("never", BERT, (tarn_wordpiece_case)99), TARN_STATUS_USAGE, "case");
  assert_int_equal(mkdir("lacking", 0700), 0);
  sandbox_write("lacking/vocab.txt", "a\nb\n", 4);
  refuses(tarn_vocab_import_wordpiece("never", "lacking", TARN_WORDPIECE_CASED), TARN_STATUS_DATA,
          "needs the tokens [UNK], [CLS] and [SEP]");
  refuses(tarn_vocab_import_wordpiece("text/never", BERT, TARN_WORDPIECE_CASED), TARN_STATUS_IO, "text");
}

static void use_tarn_vocab_save(void) {
  works(tarn_vocab_save(gpt2, "made/saved/gpt2"));
  same_bytes(gpt2, "made/saved/gpt2");
  refuses(tarn_vocab_save(gpt2, "text/never"), TARN_STATUS_IO, "text");
}

static void use_tarn_vocab_import_marian(void) {
  works(tarn_vocab_import_marian("made/marian", MARIAN, false));
  same_bytes(marian, "made/marian");
  refuses(tarn_vocab_import_marian("never", GPT2, false), TARN_STATUS_IO, "spm");
  refuses(tarn_vocab_import_marian("text/never", MARIAN, true), TARN_STATUS_IO, "text");
}

static void use_tarn_vocab_open(void) {
  tarn_vocab *vocab;
  works(tarn_vocab_open(&vocab, GPT2 "/vocab.json"));
  assert_string_equal(tarn_vocab_hash(vocab), tarn_vocab_hash(gpt2));
  tarn_vocab_close(&vocab);
  static const struct {
    const char *path;
    tarn_status status;
    const char *line;
  } bad[] = {{"missing", TARN_STATUS_IO, "missing: there is no such file; tarn vocab makes vocabularies"},
             {"empty", TARN_STATUS_DATA, "empty: the vocabulary is empty"},
             {"damaged", TARN_STATUS_DATA, "damaged: damaged vocabulary: it ends after 2 of 5 tokens"},
             {"text", TARN_STATUS_DATA, "text: this is text"},
             {"/tmp", TARN_STATUS_DATA, "/tmp: there is neither vocab.json nor"},
             {"", TARN_STATUS_IO, ": there is no such file"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    vocab = words;
    refuses(tarn_vocab_open(&vocab, bad[i].path), bad[i].status, bad[i].line);
    assert_null(vocab);
  }
}

static void use_tarn_vocab_open_memory(void) {
  size_t size;
  tarn_vocab *vocab;
  const void *data = tarn_vocab_bytes(words, &size);
  works(tarn_vocab_open_memory(&vocab, data, size));
  assert_string_equal(tarn_vocab_hash(vocab), tarn_vocab_hash(words));
  tarn_vocab_close(&vocab);
  refuses(tarn_vocab_open_memory(&vocab, data, size - 1), TARN_STATUS_DATA, "damaged vocabulary: it ends after");
  assert_null(vocab);
  refuses(tarn_vocab_open_memory(&vocab, "", 0), TARN_STATUS_DATA, "the vocabulary is empty");
  refuses(tarn_vocab_open_memory(&vocab, NULL, 0), TARN_STATUS_DATA, "the vocabulary is empty");
  refuses(tarn_vocab_open_memory(&vocab, "\xFF\xFF\xFF", 3), TARN_STATUS_DATA, "not a vocabulary, or a damaged one");
  assert_null(vocab);
}

static void use_tarn_vocab_close(void) {
  tarn_vocab *vocab;
  works(tarn_vocab_open(&vocab, "words"));
  tarn_vocab_close(&vocab);
  assert_null(vocab);
  tarn_vocab_close(&vocab);
  assert_null(vocab);
}

static void use_tarn_vocab_size(void) {
  assert_int_equal(tarn_vocab_size(words), 3 + 5);
  assert_int_equal(tarn_vocab_size(bytes), 259);
  assert_int_equal(tarn_vocab_size(gpt2), 640);
}

static void use_tarn_vocab_unk(void) {
  assert_int_equal(tarn_vocab_unk(words), 0);
  assert_int_equal(tarn_vocab_unk(gpt2), -1);
  assert_int_equal(tarn_vocab_unk(wordpiece), find(wordpiece, "[UNK]"));
}

static void use_tarn_vocab_bos(void) {
  assert_int_equal(tarn_vocab_bos(words), 1);
  assert_int_equal(tarn_vocab_bos(gpt2), find(gpt2, "<|endoftext|>"));
  assert_int_equal(tarn_vocab_bos(roberta), 640);
}

static void use_tarn_vocab_eos(void) {
  assert_int_equal(tarn_vocab_eos(words), 2);
  assert_int_equal(tarn_vocab_eos(gpt2), tarn_vocab_bos(gpt2));
  assert_int_equal(tarn_vocab_eos(roberta), 641);
}

static void use_tarn_vocab_pad(void) {
  assert_int_equal(tarn_vocab_pad(words), -1);
  assert_int_equal(tarn_vocab_pad(wordpiece), find(wordpiece, "[PAD]"));
  assert_int_equal(tarn_vocab_pad(roberta), 643);
}

static void use_tarn_vocab_special(void) {
  assert_int_equal(tarn_vocab_special(wordpiece, TARN_SPECIAL_MASK), find(wordpiece, "[MASK]"));
  assert_int_equal(tarn_vocab_special(wordpiece, TARN_SPECIAL_CLS), tarn_vocab_bos(wordpiece));
  assert_int_equal(tarn_vocab_special(roberta, TARN_SPECIAL_MASK), 642);
  assert_int_equal(tarn_vocab_special(words, TARN_SPECIAL_MASK), -1);
  assert_int_equal(tarn_vocab_special(words, TARN_SPECIAL_SEP), tarn_vocab_eos(words));
}

static void use_tarn_vocab_begins_word(void) {
  assert_true(tarn_vocab_begins_word(words, find(words, "Hund")));
  assert_true(tarn_vocab_begins_word(words, tarn_vocab_unk(words)));
  assert_false(tarn_vocab_begins_word(bytes, 3 + 'a'));
  assert_true(tarn_vocab_begins_word(bytes, 3 + ' '));
}

static void use_tarn_vocab_piece(void) {
  assert_string_equal(tarn_vocab_piece(words, 2), "</s>");
  assert_string_equal(tarn_vocab_piece(bytes, 3 + '\n'), "<0x0A>");
  assert_string_equal(tarn_vocab_piece(words, -1), "");
  assert_string_equal(tarn_vocab_piece(words, tarn_vocab_size(words)), "");
  assert_string_equal(tarn_vocab_piece(marian, INT32_MAX), "");
}

static void use_tarn_vocab_kind(void) {
  assert_string_equal(tarn_vocab_kind(words), "words");
  assert_string_equal(tarn_vocab_kind(bytes), "bytes");
  assert_string_equal(tarn_vocab_kind(gpt2), "GPT-2");
  assert_string_equal(tarn_vocab_kind(roberta), "RoBERTa");
  assert_string_equal(tarn_vocab_kind(wordpiece), "WordPiece");
}

static void use_tarn_vocab_normalization_of(void) {
  assert_string_equal(tarn_vocab_normalization_of(words), "identity");
  assert_string_equal(tarn_vocab_normalization_of(wordpiece), "BERT, lower case, no accents");
}

static void use_tarn_vocab_keeps_joiners(void) {
  assert_true(tarn_vocab_keeps_joiners(words));
  train_as("chars", TARN_VOCAB_TYPE_CHAR);
  tarn_vocab_options options;
  tarn_vocab *vocab;
  tarn_vocab_default(&options);
  options.size = 20;
  works(tarn_vocab_train("pieces", texts, 1, &options));
  works(tarn_vocab_open(&vocab, "pieces"));
  assert_false(tarn_vocab_keeps_joiners(vocab));
  tarn_vocab_close(&vocab);
}

static void use_tarn_vocab_is(void) {
  assert_true(tarn_vocab_is("words"));
  assert_true(tarn_vocab_is("bytes"));
  assert_false(tarn_vocab_is("text") || tarn_vocab_is("empty") || tarn_vocab_is("missing") || tarn_vocab_is("."));
}

static void use_tarn_vocab_hash(void) {
  assert_int_equal(strlen(tarn_vocab_hash(words)), 32);
  assert_int_equal(strspn(tarn_vocab_hash(words), "0123456789abcdef"), 32);
  assert_string_not_equal(tarn_vocab_hash(words), tarn_vocab_hash(bytes));
}

static void use_tarn_vocab_bytes(void) {
  size_t size;
  char read[4096];
  FILE *file = fopen("words", "rb");
  assert_non_null(file);
  const size_t length = fread(read, 1, sizeof read, file);
  fclose(file);
  const void *data = tarn_vocab_bytes(words, &size);
  assert_int_equal(size, length);
  assert_memory_equal(data, read, size);
}

static void use_tarn_vocab_encode(void) {
  tarn_vocab_ids ids = {0};
  works(tarn_vocab_encode(words, &ids, "der Hund fehlt", 14));
  assert_int_equal(ids.count, 3);
  assert_int_equal(ids.data[0], find(words, "der"));
  assert_int_equal(ids.data[2], tarn_vocab_unk(words));
  assert_int_equal(ids.parts, 1);
  works(tarn_vocab_encode(bytes, &ids, "\xFF", 1));
  assert_int_equal(ids.count, 1);
  assert_int_equal(ids.data[0], 3 + 0xFF);
  works(tarn_vocab_encode(words, &ids, "", 0));
  assert_int_equal(ids.count, 0);
  works(tarn_vocab_encode(gpt2, &ids, "<|endoftext|>", 13));
  for (size_t i = 0; i < ids.count; i++) assert_int_not_equal(ids.data[i], tarn_vocab_eos(gpt2));
  tarn_vocab_ids_close(&ids);
  // No text is bad: only memory can be missing.
  tarn__memory_fail_after(1);
  refuses(tarn_vocab_encode(words, &ids, "der", 3), TARN_STATUS_MEMORY, "memory");
  tarn__memory_fail_after(0);
  tarn_vocab_ids_close(&ids);
}

static tarn_status count_tokens(void *user, const tarn_vocab_ids *ids) {
  *(size_t *)user += ids->count;
  return TARN_STATUS_OK;
}

static tarn_status stop_at_once(void *user, const tarn_vocab_ids *ids) {
  (void)ids;
  ++*(size_t *)user;
  return TARN_STATUS_INTERRUPTED;
}

static void use_tarn_vocab_encode_file(void) {
  int64_t replaced = -1;
  size_t count = 0;
  works(tarn_vocab_encode_file(words, &replaced, "text", true, count_tokens, &count));
  assert_int_equal(count, 10);
  assert_int_equal(replaced, 0);
  sandbox_write("broken", "der\nder \xFF\n", 10);
  works(tarn_vocab_encode_file(words, &replaced, "broken", false, count_tokens, &count));
  assert_int_equal(replaced, 1);
  refuses(tarn_vocab_encode_file(words, &replaced, "broken", true, count_tokens, &count), TARN_STATUS_DATA,
          "broken:2: invalid UTF-8 at byte 5");
  refuses(tarn_vocab_encode_file(words, &replaced, "missing", false, count_tokens, &count), TARN_STATUS_IO,
          "missing: cannot read");
  refuses(tarn_vocab_encode_file(words, &replaced, "words", false, count_tokens, &count), TARN_STATUS_DATA,
          "words: this is");
  sandbox_write("zero", "der\0Hund\n", 9);
  refuses(tarn_vocab_encode_file(words, &replaced, "zero", false, count_tokens, &count), TARN_STATUS_DATA, "zero");
  count = 0;
  assert_int_equal(tarn_vocab_encode_file(words, &replaced, "text", false, stop_at_once, &count),
                   TARN_STATUS_INTERRUPTED);
  assert_int_equal(count, 1);
}

static void use_tarn_vocab_decode(void) {
  tarn_vocab_text decoded = {0};
  const int32_t good[] = {find(words, "der"), find(words, "Hund"), tarn_vocab_eos(words)};
  works(tarn_vocab_decode(words, &decoded, good, 3));
  assert_string_equal(decoded.data, "der Hund");
  assert_int_equal(decoded.length, 8);
  works(tarn_vocab_decode(words, &decoded, NULL, 0));
  assert_int_equal(decoded.length, 0);
  const int32_t bad[] = {-1, tarn_vocab_size(words), INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refuses(tarn_vocab_decode(words, &decoded, &bad[i], 1), TARN_STATUS_DATA, "is outside the vocabulary of 8 tokens");
  tarn_vocab_text_close(&decoded);
}

static void use_tarn_vocab_ids_close(void) {
  tarn_vocab_ids ids = {0};
  works(tarn_vocab_encode(words, &ids, "der", 3));
  tarn_vocab_ids_close(&ids);
  assert_null(ids.data);
  assert_int_equal(ids.count + ids.capacity, 0);
  tarn_vocab_ids_close(&ids);
}

static void use_tarn_vocab_text_close(void) {
  tarn_vocab_text decoded = {0};
  works(tarn_vocab_decode(bytes, &decoded, (int32_t[]){3 + 'a'}, 1));
  assert_string_equal(decoded.data, "a");
  tarn_vocab_text_close(&decoded);
  assert_null(decoded.data);
  assert_int_equal(decoded.length + decoded.capacity, 0);
  tarn_vocab_text_close(&decoded);
}

static void use_tarn_vocab_characters(void) {
  assert_int_equal(tarn_vocab_characters("M\xC3\xA4nner", 7), 6);
  assert_int_equal(tarn_vocab_characters("\xFF\xFF", 2), 2);
  assert_int_equal(tarn_vocab_characters("\xE2\x82", 2), 1);
  assert_int_equal(tarn_vocab_characters("", 0), 0);
}

int main(void) {
  static const char *const headers[] = {"vocab.h", NULL};
  static const api_use uses[] = {
      USE(tarn_vocab_normalization_name),
      USE(tarn_vocab_default),
      USE(tarn_vocab_train),
      USE(tarn_vocab_import_gpt2),
      USE(tarn_vocab_import_tokenizer),
      USE(tarn_vocab_import_wordpiece),
      USE(tarn_vocab_import_marian),
      USE(tarn_vocab_save),
      USE(tarn_vocab_open),
      USE(tarn_vocab_open_memory),
      USE(tarn_vocab_close),
      USE(tarn_vocab_size),
      USE(tarn_vocab_unk),
      USE(tarn_vocab_bos),
      USE(tarn_vocab_eos),
      USE(tarn_vocab_pad),
      USE(tarn_vocab_special),
      USE(tarn_vocab_begins_word),
      USE(tarn_vocab_piece),
      USE(tarn_vocab_kind),
      USE(tarn_vocab_normalization_of),
      USE(tarn_vocab_keeps_joiners),
      USE(tarn_vocab_is),
      USE(tarn_vocab_hash),
      USE(tarn_vocab_bytes),
      USE(tarn_vocab_ids_close),
      USE(tarn_vocab_text_close),
      USE(tarn_vocab_encode),
      USE(tarn_vocab_encode_file),
      USE(tarn_vocab_decode),
      USE(tarn_vocab_characters),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, close_all);
}
