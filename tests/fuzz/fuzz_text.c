// Text that becomes tokens: preparing a shard, which then has to be whole, encoding a file, and the training of a
// vocabulary of words and of characters. The first line feed but one ends the source text of a translation.
#include <string.h>

#include "data/shard.h"
#include "fuzz/fuzz.h"
#include "tarn/data.h"
#include "tarn/vocab.h"

static tarn_status ignore_ids(void *user, const tarn_vocab_ids *ids) {
  *(size_t *)user += ids->count;
  return TARN_STATUS_OK;
}

void fuzz_prepare(void) {
  static const char words[] = "tarn-vocab whitespace 1\nlowercase 0\nsize 6\n<unk>\n<s>\n</s>\na\nb\nc\n";
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  fuzz_must(tarn_vocab_train("bytes", NULL, 0, &options));
  fuzz_write("words", words, sizeof words - 1);
}

static void prepare(bool pair, size_t size) {
  tarn_prepare_options options;
  tarn_prepare_result result;
  tarn__shard shard;
  tarn_prepare_default(&options);
  options.vocab = size % 2 ? "words" : "bytes";
  options.source = pair ? "text" : NULL;
  options.target = pair ? "text" : NULL;
  options.text = pair ? NULL : "text";
  options.output = "data";
  options.strict = size / 2 % 8 == 0;
  options.max_tokens = 2 + (int64_t)(size / 4 % 64);
  options.overlong = (tarn_prepare_overlong)(size % 3);
  if (!fuzz_good(tarn_prepare_run(&result, &options))) return;
  fuzz_must(tarn__shard_open(&shard, "data"));
  FUZZ_REQUIRE(shard.pairs == result.pairs && shard.target_tokens == result.target_tokens);
  tarn__shard_close(&shard);
}

static void train(size_t size) {
  const char *file = "text";
  tarn_vocab_options options;
  tarn_vocab *vocab;
  tarn_vocab_default(&options);
  options.type = size % 64 == 40 ? TARN_VOCAB_TYPE_CHAR : TARN_VOCAB_TYPE_WHITESPACE;  // which sorts all of Unicode
  options.lowercase = size / 2 % 2;
  options.size = 4 + (int64_t)(size % 50);
  if (!fuzz_good(tarn_vocab_train("vocab", &file, 1, &options))) return;
  fuzz_must(tarn_vocab_open(&vocab, "vocab"));
  tarn_vocab_close(&vocab);
}

static void encode(void) {
  tarn_vocab *vocab;
  int64_t replaced;
  size_t count = 0;
  fuzz_must(tarn_vocab_open(&vocab, "bytes"));
  (void)fuzz_good(tarn_vocab_encode_file(vocab, &replaced, "text", false, ignore_ids, &count));
  tarn_vocab_close(&vocab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_write("text", data, size);
  prepare(size / 2 % 2, size);
  if (size % 4 == 0) train(size / 4);
  if (size % 4 == 1) encode();
  return 0;
}
