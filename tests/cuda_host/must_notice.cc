// The proof that cuda-host notices what a card would stumble over: kernels with a mistake each, which must give a wrong
// result or end the process, and the same kernels without it, which must not, in every order of threads.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_host.h"

namespace {

const int THREADS = 128, ORDERS = 4, BLOCKS = 3;

enum mistake { NONE, NO_BARRIER, NO_BARRIER_BEHIND, NO_SYNC, DIVERGENT, ENDED_LANE, NOT_WRITTEN, BEYOND, KINDS };

const char *const names[KINDS] = {"none",
                                  "no barrier between writing and reading",
                                  "no barrier between reading and the next writing",
                                  "no synchronisation within a warp",
                                  "a barrier in one branch, a shuffle in the other",
                                  "a lane that has ended takes part in a shuffle",
                                  "shared memory that was not written",
                                  "blocks that rely on their order"};

float *shared() { return reinterpret_cast<float *>(tarn__host_shared()); }

// Twice: each thread writes a number, and adds up those of all.
__global__ void sums_kernel(float *out, float *other, mistake is) {
  float *numbers = shared(), sum = 0.0f;
  const unsigned t = threadIdx.x, lane = t % 32;
  if (is == ENDED_LANE && t == 5) return;
  if (is == DIVERGENT && t < 32) __syncthreads();
  if (is == ENDED_LANE || is == DIVERGENT) sum = 0.0f * __shfl_xor_sync(0xFFFFFFFFu, 1.0f, 1);
  for (int round = 0; round < 2; round++) {
    if (is != NOT_WRITTEN || t != 7) numbers[t] = (float)(t + (unsigned)round);
    if (is != NO_BARRIER) __syncthreads();
    for (int i = 0; i < THREADS; i++) sum += numbers[i];
    if (is != NO_BARRIER_BEHIND) __syncthreads();
  }
  numbers[t] = (float)t;
  if (is != NO_SYNC) __syncwarp();
  sum += numbers[t - lane + (lane + 1) % 32];
  if (is == BEYOND) {
    if (t == 0) other[blockIdx.x] = 1.0f;
    if (blockIdx.x > 0) sum += other[blockIdx.x - 1] - 1.0f;
  }
  out[blockIdx.x * (unsigned)THREADS + t] = sum;
}

// Whether the sums are right.
bool right(mistake is, int order) {
  float out[BLOCKS * THREADS] = {0}, other[BLOCKS] = {NAN, NAN, NAN};
  char text[16];
  snprintf(text, sizeof text, "%d", order);
  setenv("TARN_CUDA_ORDER", text, 1);
  if (tarn__host_launch((const void *)&sums_kernel, (unsigned)BLOCKS, (unsigned)THREADS,
                        (unsigned)THREADS * sizeof(float), nullptr,
                        tarn__host_bind(sums_kernel, (float *)out, (float *)other, is)) != cudaSuccess)
    return false;
  const float all = (float)(THREADS * (THREADS - 1) / 2);
  for (unsigned b = 0; b < (unsigned)BLOCKS; b++)
    for (unsigned t = 0; t < (unsigned)THREADS; t++)
      if (out[b * (unsigned)THREADS + t] != 2.0f * all + (float)THREADS + (float)(t - t % 32 + (t % 32 + 1) % 32))
        return false;
  return true;
}

// In a process of its own, which a mistake may end.
bool noticed(mistake is, int order) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) exit(1);
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    _exit(right(is, order) ? 0 : 3);
  }
  int status = 0;
  return waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace

int main() {
  int failed = 0;
  for (int is = 0; is < KINDS; is++) {
    int times = 0;
    for (int order = 0; order < ORDERS; order++) times += noticed((mistake)is, order);
    const bool good = is == NONE ? times == 0 : times > 0;
    printf("%s: noticed in %d of %d orders%s\n", names[is], times, ORDERS, good ? "" : ": FAILED");
    failed += !good;
  }
  return failed != 0;
}
