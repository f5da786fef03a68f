// The threads of a block as fibres: each has a stack of its own and runs until it must wait.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <mutex>
#include <set>
#include <vector>

#include "cuda_host.h"

#if defined(__SANITIZE_ADDRESS__)
#define FIBRES_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBRES_ASAN 1
#endif
#endif
#if defined(FIBRES_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

// For functions that a fibre never returns from: the marks that the address sanitizer puts around their variables would
// stay on the stack, for the next fibre there.
#define UNMARKED __attribute__((no_sanitize_address))

namespace {

enum { WARP = 32, STACK = 64 << 10, MOST = 1024, SLOT = 64 };

enum state { READY, AT_BARRIER, AT_EXCHANGE, DONE };

struct warp {
  unsigned char given[WARP][SLOT];     // by lanes that wait in an exchange
  unsigned char taken[2][WARP][SLOT];  // of the last two exchanges of the whole warp
  unsigned turns;                      // exchanges so far
};

// A copy from global to shared memory that has not arrived (cp.async).
struct copy {
  void *to;
  const void *from;
  size_t size, valid;
  unsigned group;
};

struct fibre {
  std::vector<copy> copies;
  unsigned groups;  // of copies, ended so far
  tarn__host_thread it;
  state now;
  unsigned mask;  // of the exchange at which it waits
  size_t bytes;   // and what it gave
  const unsigned char *result;
  unsigned char (*own)[SLOT];  // of an exchange of a part of the warp
  void *stack;
  void *sp;
};

std::mutex one;  // launch at a time
fibre fibres[MOST];
warp warps[MOST / WARP];
fibre *current;
void *scheduler_sp;
const std::function<void()> *body;
unsigned char *shared_memory;
size_t shared_room;
uint64_t order;      // 0: natural
uint64_t random_at;  // state of the generator of orders
const char *launched = "";

#if defined(FIBRES_ASAN)
void *fake_stack;
const void *host_bottom;
size_t host_size;
#endif

[[noreturn]] void stop(const char *what) {
  fprintf(stderr, "cuda-host: %s: %s\n", launched, what);
  abort();
}

uint64_t draw() {  // splitmix64
  uint64_t z = (random_at += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void shuffle(std::vector<int> &items) {
  for (size_t i = 0; i < items.size(); i++) items[i] = (int)i;
  if (!order) return;
  for (size_t i = items.size(); i > 1; i--) std::swap(items[i - 1], items[draw() % i]);
}

// --- switching

#if defined(__x86_64__)
extern "C" void tarn__host_switch(void **from, void *to);
asm(R"(
.text
.globl tarn__host_switch
.hidden tarn__host_switch
.type tarn__host_switch, @function
tarn__host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tarn__host_switch, .-tarn__host_switch
)");
#else
// Elsewhere by the C library, which is slower: a fibre's `sp` is its context.
ucontext_t contexts[MOST], scheduler_context;
#endif

UNMARKED void to_scheduler() {
#if defined(FIBRES_ASAN)
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(current->now == DONE ? nullptr : &fake, host_bottom, host_size);
#endif
#if defined(__x86_64__)
  tarn__host_switch(&current->sp, scheduler_sp);
#else
  swapcontext(&contexts[current - fibres], &scheduler_context);
#endif
#if defined(FIBRES_ASAN)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void run(fibre *f) {
  current = f;
  tarn__host_now = &f->it;
#if defined(FIBRES_ASAN)
  __sanitizer_start_switch_fiber(&fake_stack, f->stack, STACK);
#endif
#if defined(__x86_64__)
  tarn__host_switch(&scheduler_sp, f->sp);
#else
  swapcontext(&scheduler_context, &contexts[f - fibres]);
#endif
#if defined(FIBRES_ASAN)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

extern "C" UNMARKED void tarn__host_begin() {
#if defined(FIBRES_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &host_bottom, &host_size);
#endif
  (*body)();
  if (!current->copies.empty()) stop("a thread has ended before its copies to shared memory");
  current->now = DONE;
  to_scheduler();
  abort();
}

void prepare(fibre *f) {
  if (!f->stack) {
    void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) stop("out of memory for stacks");
    f->stack = stack;
  }
  f->now = READY;
  f->copies.clear();
  f->groups = 0;
#if defined(__x86_64__)
  void **top = (void **)((char *)f->stack + STACK);
  *--top = nullptr;                    // keeps the stack aligned as after a call
  *--top = (void *)&tarn__host_begin;  // where the first switch returns to
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f->sp = top;
#else
  ucontext_t *context = &contexts[f - fibres];
  getcontext(context);
  context->uc_stack.ss_sp = f->stack;
  context->uc_stack.ss_size = STACK;
  makecontext(context, tarn__host_begin, 0);
#endif
}

// --- waiting

// Lets the lanes of an exchange go on if all of them have come.
void complete_exchange(int w, const fibre *f) {
  warp &at = warps[w];
  const unsigned mask = f->mask;
  for (int lane = WARP - 1; lane >= 0; lane--) {  // the last ones come last, in the natural order
    if (!(mask >> lane & 1u)) continue;
    const fibre &other = fibres[w * WARP + lane];
    if (other.now == DONE) stop("a lane of a shuffle has ended");
    if (other.now != AT_EXCHANGE) return;
    if (other.mask != mask || other.bytes != f->bytes) stop("the lanes of a shuffle differ in mask or size");
  }
  unsigned char(*result)[SLOT] = at.taken[at.turns++ % 2];
  const bool whole = mask == 0xFFFFFFFFu;
  for (int lane = 0; whole && f->bytes && lane < WARP; lane++) memcpy(result[lane], at.given[lane], f->bytes);
  for (int lane = 0; lane < WARP; lane++) {
    if (!(mask >> lane & 1u)) continue;
    fibre &other = fibres[w * WARP + lane];
    other.result = result[0];
    if (!whole) {
      if (!other.own) other.own = (unsigned char(*)[SLOT])calloc(WARP, SLOT);
      if (!other.own) stop("out of memory");
      memcpy(other.own, at.given, sizeof at.given);
      other.result = other.own[0];
    }
    other.now = READY;
  }
}

// Runs the lanes of a warp until none can go on.
bool run_warp(int w, std::vector<int> &lanes) {
  bool ran = false;
  shuffle(lanes);
  for (bool again = true; again;) {
    again = false;
    for (const int lane : lanes) {
      fibre *f = &fibres[w * WARP + lane];
      if (f->now != READY) continue;
      run(f);
      ran = again = true;
      if (f->now == AT_EXCHANGE) complete_exchange(w, f);
    }
  }
  return ran;
}

void run_block(int threads) {
  std::vector<int> lanes(WARP), turn((size_t)(threads / WARP));
  for (int i = 0; i < threads; i++) prepare(&fibres[i]);
  for (;;) {
    bool ran = false;
    int at_barrier = 0, done = 0;
    shuffle(turn);
    for (const int w : turn) ran |= run_warp(w, lanes);
    for (int i = 0; i < threads; i++) at_barrier += fibres[i].now == AT_BARRIER, done += fibres[i].now == DONE;
    if (done == threads) return;
    if (at_barrier + done == threads)
      for (int i = 0; i < threads; i++) fibres[i].now = fibres[i].now == AT_BARRIER ? READY : DONE;
    else if (!ran)
      stop("threads wait for others that wait elsewhere");
  }
}

// The kernels that were launched, for the file that TARN_CUDA_COVERAGE names: a line each, at the end of the process.
struct coverage {
  std::set<const void *> kernels;
  ~coverage() {
    const char *path = getenv("TARN_CUDA_COVERAGE");
    FILE *file = path && !kernels.empty() ? fopen(path, "a") : nullptr;
    for (const void *kernel : kernels) {
      Dl_info info;
      if (file && dladdr(kernel, &info))
        fprintf(file, "%lx\n", (unsigned long)((const char *)kernel - (const char *)info.dli_fbase));
    }
    if (file) fclose(file);
  }
} covered;

const char *name_of(const void *kernel) {
  static char text[64];
  Dl_info info;
  if (!dladdr(kernel, &info)) return "a kernel";
  if (info.dli_sname) return info.dli_sname;
  snprintf(text, sizeof text, "the kernel at %lx",
           (unsigned long)((const char *)kernel - (const char *)info.dli_fbase));
  return text;
}

}  // namespace

tarn__host_thread *tarn__host_now;

void *tarn__host_shared() { return shared_memory; }

void tarn__host_barrier() {
  current->now = AT_BARRIER;
  to_scheduler();
}

const unsigned char *tarn__host_exchange(unsigned mask, const void *mine, size_t bytes) {
  fibre *f = current;
  const int index = (int)(f - fibres), lane = index % WARP;
  if (!(mask >> lane & 1u)) stop("a lane outside of the mask takes part in a shuffle");
  if (bytes > SLOT) stop("a shuffle of too many bytes");
  if (bytes) memcpy(warps[index / WARP].given[lane], mine, bytes);
  f->mask = mask;
  f->bytes = bytes;
  f->now = AT_EXCHANGE;
  to_scheduler();
  return f->result;
}

void tarn__host_copy(void *to, const void *from, size_t size, size_t valid) {
  if (valid > size || (uintptr_t)to % size || (uintptr_t)from % size) stop("a copy to shared memory is not aligned");
  memset(to, 0xFF, size);
  current->copies.push_back({to, from, size, valid, current->groups});
}

void tarn__host_copy_commit() { current->groups++; }

void tarn__host_copy_wait(int left) {
  fibre *f = current;
  size_t kept = 0;
  for (const copy &c : f->copies) {
    if ((int64_t)c.group >= (int64_t)f->groups - left) {
      f->copies[kept++] = c;
      continue;
    }
    memset(c.to, 0, c.size);
    memcpy(c.to, c.from, c.valid);
  }
  f->copies.resize(kept);
}

cudaError_t tarn__host_launch(const void *kernel, dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream,
                              const std::function<void()> &what) {
  const cudaError_t failed = tarn__host_queue(stream);
  if (failed != cudaSuccess) return failed;
  const std::lock_guard<std::mutex> guard(one);
  const size_t count = (size_t)threads.x * threads.y * threads.z;
  launched = name_of(kernel);
  if (count == 0 || count > MOST || count % WARP)
    stop("the number of threads of a block is no multiple of 32 up to 1024");
  if (shared > 227 * 1024) stop("more shared memory than a block may have");
  if (blocks.y > 65535 || blocks.z > 65535) stop("a grid is too large");
  if (shared_room != shared || !shared_memory) {
    free(shared_memory);
    // Exactly what was asked for, so that the address sanitizer sees what is beyond it.
    shared_memory = nullptr;
    if (posix_memalign((void **)&shared_memory, 128, shared ? shared : 1)) stop("out of memory");
    shared_room = shared;
  }
  const char *text = getenv("TARN_CUDA_ORDER");
  order = text ? strtoull(text, nullptr, 10) : 0;
  random_at = order;
  body = &what;
  covered.kernels.insert(kernel);
  for (unsigned i = 0; i < count; i++) {
    fibres[i].it.thread = uint3{i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y};
    fibres[i].it.block_size = threads;
    fibres[i].it.grid = blocks;
  }
  std::vector<int> turn((size_t)blocks.x * blocks.y * blocks.z);
  shuffle(turn);
  for (const int b : turn) {
    const unsigned n = (unsigned)b;
    const uint3 block = {n % blocks.x, n / blocks.x % blocks.y, n / blocks.x / blocks.y};
    for (unsigned i = 0; i < count; i++) fibres[i].it.block = block;
    memset(shared_memory, 0xFF, shared);
    run_block((int)count);
  }
  return cudaSuccess;
}
