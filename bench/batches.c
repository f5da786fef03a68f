// Prints the batches of a training, for a peer that is to train on the same sentences in the same order: a line for
// each update, with the numbers of its pairs in the shard.
//   bench_batches SHARD MAX_TOKENS UPDATES [SEED]
// They are those of `tarn train` with data.train SHARD, train.max_tokens, train.seed and one batch an update.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/batch.h"
#include "data/shard.h"
#include "tarn/status.h"

// The description's default of model.max_length: longer pairs are left out.
enum { LONGEST = 1024 };

static tarn_status print_batches(const tarn__shard *shard, int64_t max_tokens, int64_t updates, uint64_t seed) {
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = max_tokens;
  options.longest = LONGEST;
  options.seed = seed;
  tarn__batcher *batcher = NULL;
  TARN_TRY(tarn__batcher_open(&batcher, shard, &options));
  for (int64_t update = 0; update < updates; update++) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    for (int64_t i = 0; i < batch.target.sentences; i++) printf("%s%" PRId64, i > 0 ? " " : "", batch.index[i]);
    printf("\n");
  }
  tarn__batcher_close(&batcher);
  return TARN_STATUS_OK;
}

int main(int argc, char **argv) {
  const int64_t max_tokens = argc > 2 ? strtoll(argv[2], NULL, 10) : 0,
                updates = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;
  if (argc < 4 || argc > 5 || max_tokens < 1 || updates < 1) {
    fprintf(stderr, "usage: bench_batches SHARD MAX_TOKENS UPDATES [SEED]\n");
    return 2;
  }
  tarn__shard shard = {0};
  tarn_status status = tarn__shard_open(&shard, argv[1]);
  if (status == TARN_STATUS_OK)
    status = print_batches(&shard, max_tokens, updates, argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
  tarn__shard_close(&shard);
  if (status == TARN_STATUS_OK && fflush(stdout) == 0) return 0;
  fprintf(stderr, "bench_batches: %s\n", tarn_error_message());
  return 1;
}
