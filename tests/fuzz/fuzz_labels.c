// A table of sentences with labels that becomes a shard, which then has to be whole. The first byte says how it is
// read.
#include "data/shard.h"
#include "fuzz/fuzz.h"
#include "tarn/data.h"
#include "tarn/vocab.h"

static const char ROWS[] = "text\tlabel\nab\ta\ncd\tb\n";

void fuzz_prepare(void) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  fuzz_must(tarn_vocab_train("bytes", NULL, 0, &options));
  fuzz_write("known", ROWS, sizeof ROWS - 1);
  tarn_labelled_options known;
  tarn_labelled_result result;
  tarn_labelled_default(&known);
  known.vocab = "bytes";
  known.table = "known";
  known.text = "text";
  known.label = "label";
  known.output = "train";
  fuzz_must(tarn_labelled_prepare(&result, &known));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_labelled_options options;
  tarn_labelled_result result;
  tarn__shard shard;
  const unsigned how = size ? data[0] : 0;
  tarn_labelled_default(&options);
  fuzz_write("table", data + (size > 0), size - (size > 0));
  options.vocab = "bytes";
  options.table = "table";
  options.text = how & 1 ? "text" : "1";
  options.label = how & 2 ? "label" : "2";
  options.pair = how & 4 ? how & 8 ? "3" : "pair" : NULL;
  options.numbers = how & 16;
  options.labels_from = how & 32 ? "train" : NULL;
  options.strict = how & 64;
  options.header = how & 128;
  options.max_tokens = 4 + (int64_t)(how % 29);
  options.overlong = (tarn_prepare_overlong)(how % 3);
  options.output = "data";
  options.delimiter = ",;|\t\0"[size % 5];
  options.decimal = options.numbers ? ".,\0"[size % 3] : 0;
  if (!fuzz_good(tarn_labelled_prepare(&result, &options))) return 0;
  fuzz_must(tarn__shard_open(&shard, "data"));
  FUZZ_REQUIRE(shard.pairs == result.rows && shard.target_tokens == result.tokens && shard.classes == result.classes);
  FUZZ_REQUIRE(shard.longest_target == result.longest && result.longest <= options.max_tokens);
  FUZZ_REQUIRE((shard.segments != NULL) == (options.pair != NULL));
  tarn__shard_close(&shard);
  return 0;
}
