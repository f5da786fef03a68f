#include "device/cpu/mixing/token_sentences.h"

enum { SENTENCES = 2 };  // minimum per thread for threads to take whole sentences

tarn__sentence_work tarn__sentence_work_of(const tarn__tensor *offsets, int64_t longest, int threads) {
  const bool many = offsets->cols - 1 >= (int64_t)SENTENCES * threads;
  tarn__sentence_work work = {many ? threads : 1, many ? 1 : threads, longest, offsets};
  if (!offsets->host) return work;
  work.longest = 0;
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t n = offsets->host[s + 1] - offsets->host[s];
    if (n > work.longest) work.longest = n;
  }
  return work;
}

size_t tarn__sentence_scratch(const tarn__sentence_work *work,
                              size_t (*bytes)(const void *user, int64_t n, int threads), const void *user) {
  const int32_t *offset = work->offsets->host;
  const int64_t count = offset ? work->offsets->cols - 1 : work->longest;
  size_t most = 0;
  for (int64_t i = 0, before = 0; i < count; i++) {
    const int64_t n = offset ? offset[i + 1] - offset[i] : i + 1;
    // Many batches have sentences of equal length.
    const size_t size = n != before && n > 0 ? bytes(user, n, work->helpers) : 0;
    if (size > most) most = size;
    before = n;
  }
  return most;
}

void tarn__sentences_run(const tarn__sentence_work *work, const tarn__tensor *offsets,
                         void (*run)(const void *user, int worker, int64_t s, int64_t row, int64_t n),
                         const void *user) {
  const int32_t *offset = offsets->data;
  const int64_t sentences = offsets->cols - 1;
  if (work->workers == 1) {
    for (int64_t s = 0; s < sentences; s++) run(user, 0, s, offset[s], offset[s + 1] - offset[s]);
    return;
  }
#pragma omp parallel for num_threads(work->workers) schedule(static, 1)
  for (int w = 0; w < work->workers; w++)
    for (int64_t s = sentences * w / work->workers; s < sentences * (w + 1) / work->workers; s++)
      run(user, w, s, offset[s], offset[s + 1] - offset[s]);
}
