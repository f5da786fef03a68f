// A device whose memory the host cannot touch: the processor's kernels on memory that is mapped apart and protected
// whenever no kernel and no copy runs. Whatever reads or writes it outside of the interface faults at once; so what
// runs here runs on a device with memory of its own. In the other direction, kernels are refused tensors of the host's.
//
// With several decoders on threads of their own the memory is open to all while one of them computes.
#ifndef TARN_TESTS_SHADOW_DEVICE_H
#define TARN_TESTS_SHADOW_DEVICE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/devices.h"
#include "device/op_list.h"
#include "graph/graph.h"
#include "optim/ridge.h"

typedef struct shadow_block {
  struct shadow_block *next;
  char *memory;
  size_t bytes;
} shadow_block;

static struct {
  pthread_mutex_t lock;
  shadow_block *blocks;
  int inside;        // kernels and copies that run
  size_t now, most;  // bytes, in whole pages
  int sums, means;   // how often AutoFreeze's norms and means of checkpoints were computed there
  int taken;         // and rows of the device taken as samples of a regression
} shadow = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void shadow_stop(const char *what) {
  fprintf(stderr, "shadow device: %s\n", what);
  abort();
}

static inline void shadow_protect(int how) {
  for (shadow_block *b = shadow.blocks; b; b = b->next)
    if (mprotect(b->memory, b->bytes, how) != 0) shadow_stop("mprotect fails");
}

static inline void shadow_enter(void) {
  pthread_mutex_lock(&shadow.lock);
  if (shadow.inside++ == 0) shadow_protect(PROT_READ | PROT_WRITE);
  pthread_mutex_unlock(&shadow.lock);
}

static inline void shadow_leave(void) {
  pthread_mutex_lock(&shadow.lock);
  if (--shadow.inside == 0) shadow_protect(PROT_NONE);
  pthread_mutex_unlock(&shadow.lock);
}

static inline bool shadow_owns(const void *memory) {
  bool owns = false;
  pthread_mutex_lock(&shadow.lock);
  for (const shadow_block *b = shadow.blocks; b; b = b->next)
    owns |= (const char *)memory >= b->memory && (const char *)memory < b->memory + b->bytes;
  pthread_mutex_unlock(&shadow.lock);
  return owns;
}

static inline tarn_status shadow_allocate(void **out, tarn__memory_kind kind, size_t count, size_t size) {
  (void)kind;
  size_t bytes;
  *out = NULL;
  TARN_TRY(tarn__mul_size(&bytes, count, size));
  shadow_block *block = malloc(sizeof *block);
  TARN_REQUIRE(block, MEMORY, "shadow device: out of memory");
  pthread_mutex_lock(&shadow.lock);
  block->bytes = (bytes + 4096) & ~(size_t)4095;  // a page at least
  void *memory = mmap(NULL, block->bytes, shadow.inside ? PROT_READ | PROT_WRITE : PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) shadow_stop("mmap fails");
  *out = block->memory = memory;
  block->next = shadow.blocks;
  shadow.blocks = block;
  shadow.now += block->bytes;
  if (shadow.now > shadow.most) shadow.most = shadow.now;
  pthread_mutex_unlock(&shadow.lock);
  return TARN_STATUS_OK;
}

static inline void shadow_free(void *memory) {
  if (!memory) return;
  pthread_mutex_lock(&shadow.lock);
  shadow_block **at = &shadow.blocks;
  while (*at && (*at)->memory != memory) at = &(*at)->next;
  shadow_block *block = *at;
  if (!block) shadow_stop("memory is freed that it did not give");
  *at = block->next;
  shadow.now -= block->bytes;
  munmap(block->memory, block->bytes);
  free(block);
  pthread_mutex_unlock(&shadow.lock);
}

static inline tarn_status shadow_move(void *to, const void *from, size_t bytes) {
  shadow_enter();
  memcpy(to, from, bytes);
  shadow_leave();
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_copy_in(void *to, const void *from, size_t bytes) {
  if (!shadow_owns(to) || shadow_owns(from)) shadow_stop("copy_in: not from the host to the device");
  return shadow_move(to, from, bytes);
}

static inline tarn_status shadow_copy_out(void *to, const void *from, size_t bytes) {
  if (shadow_owns(to) || !shadow_owns(from)) shadow_stop("copy_out: not from the device to the host");
  return shadow_move(to, from, bytes);
}

static inline tarn_status shadow_copy(void *to, const void *from, size_t bytes) {
  if (!shadow_owns(to) || !shadow_owns(from)) shadow_stop("copy: not within the device");
  return shadow_move(to, from, bytes);
}

static inline tarn_status shadow_fill(void *to, unsigned char byte, size_t bytes) {
  if (!shadow_owns(to)) shadow_stop("fill: not within the device");
  shadow_enter();
  memset(to, byte, bytes);
  shadow_leave();
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_absolute_sum(double *sum, const float *x, size_t n) {
  if (!shadow_owns(x)) shadow_stop("absolute_sum: not within the device");
  shadow.sums++;
  shadow_enter();
  tarn_status status = tarn__device_cpu.absolute_sum(sum, x, n);
  shadow_leave();
  return status;
}

static inline tarn_status shadow_add_scaled(float *sums, const void *values, size_t n, double weight) {
  if (!shadow_owns(sums) || !shadow_owns(values)) shadow_stop("add_scaled: not within the device");
  shadow.means++;
  shadow_enter();
  tarn_status status = tarn__device_cpu.add_scaled(sums, values, n, weight);
  shadow_leave();
  return status;
}

static inline tarn_status shadow_synchronise(void) { return TARN_STATUS_OK; }

static inline tarn_status shadow_check(const tarn__node *node, const tarn__tensor *tensor) {
  TARN_REQUIRE(!tensor || !tensor->data || shadow_owns(tensor->data), INTERNAL,
               "shadow device: %s is given %s in the memory of the host", node->op->name, tensor->name);
  return TARN_STATUS_OK;
}

// The address sanitizer maps so much for itself that two small numbers side by side look like an address.
#if defined __SANITIZE_ADDRESS__
#define SHADOW_TELLS_ADDRESSES false
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHADOW_TELLS_ADDRESSES false
#endif
#endif
#ifndef SHADOW_TELLS_ADDRESSES
#define SHADOW_TELLS_ADDRESSES true
#endif

// Whether a word of a node's attributes is the address of memory that the host has mapped.
static inline bool shadow_is_address(uintptr_t word) {
  if (!SHADOW_TELLS_ADDRESSES) return false;
  unsigned char resident;
  const uintptr_t page = word & ~(uintptr_t)4095;
  // Half a word may be a small number, and the other half padding, with whatever the compiler left in it.
  if ((uint32_t)word < 65536) return false;
  return page != 0 && mincore((void *)page, 1, &resident) == 0;
}

// Attributes go to the device with the call; what an address in them leads to would stay behind. Marks compute nothing.
static inline tarn_status shadow_check_attributes(const tarn__node *node) {
  for (size_t at = 0; at + sizeof(uintptr_t) <= node->attr_bytes && node->op->id != TARN__OP_MARK;
       at += sizeof(uintptr_t)) {
    uintptr_t word;
    memcpy(&word, (const char *)node->attr + at, sizeof word);
    TARN_REQUIRE(!shadow_is_address(word), INTERNAL, "shadow device: an attribute of %s is an address", node->op->name);
  }
  return TARN_STATUS_OK;
}

// Every array that a training keeps of a parameter.
static inline bool shadow_holds(const tarn__param *param) {
  const tarn__param_training *t = &param->training;
  const void *const arrays[] = {param->value, t->master, t->grad, t->used_rows, t->moment1, t->moment2, t->grad_sum};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
    if (arrays[i] && !shadow_owns(arrays[i])) return false;
  return true;
}

static inline void shadow_check_params(tarn__param *const *params, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!shadow_holds(params[i])) shadow_stop("an array of a parameter is in the memory of the host");
}

// The processor has one table of kernels for both of its types.
static inline const tarn__device_kernel *shadow_kernel(const tarn__node *node) {
  return &tarn__device_cpu.kernels[TARN__F32][node->op->id];
}

static inline tarn_status shadow_run(const tarn__exec *exec, const tarn__node *node) {
  for (int i = 0; i < TARN__MAX_INPUTS; i++) TARN_TRY(shadow_check(node, node->in[i]));
  for (int i = 0; i < TARN__MAX_OUTPUTS; i++) TARN_TRY(shadow_check(node, node->out[i]));
  for (int i = 0; i < TARN__MAX_PARAM_GRADS; i++)
    TARN_REQUIRE(!node->dparam[i] || shadow_holds(node->dparam[i]), INTERNAL,
                 "shadow device: %s is given arrays of %s in the memory of the host", node->op->name,
                 node->dparam[i]->name);
  TARN_REQUIRE(node->scratch_bytes == 0 || shadow_owns(node->scratch), INTERNAL,
               "shadow device: %s is given scratch in the memory of the host", node->op->name);
  TARN_TRY(shadow_check_attributes(node));
  shadow_enter();
  const tarn_status status = shadow_kernel(node)->run(exec, node);
  shadow_leave();
  return status;
}

static inline size_t shadow_scratch(const tarn__node *node, int threads) {
  const tarn__device_kernel *kernel = shadow_kernel(node);
  return kernel->scratch ? kernel->scratch(node, threads) : 0;
}

#define SHADOW_ENTRY(word) [TARN__OP_##word] = {shadow_run, shadow_scratch},
static const tarn__device_kernel shadow_kernels[TARN__OPS] = {TARN__OP_LIST(SHADOW_ENTRY)};
#undef SHADOW_ENTRY

static inline const char *shadow_split_lacks(void) { return tarn__device_cpu.split_lacks(); }

static inline size_t shadow_pack_bytes(const tarn__device_weight *weight) {
  return tarn__device_cpu.pack_bytes(weight);
}

static inline tarn_status shadow_pack(void *packed, const tarn__device_weight *weight, int threads) {
  if (!shadow_owns(packed) || !shadow_owns(weight->value)) shadow_stop("pack: not within the device");
  shadow_enter();
  tarn_status status = tarn__device_cpu.pack(packed, weight, threads);
  shadow_leave();
  return status;
}

static inline tarn_status shadow_quantise(signed char *values, float *scales, const tarn__device_weight *weight,
                                          int threads) {
  if (!shadow_owns(values) || !shadow_owns(scales) || !shadow_owns(weight->value))
    shadow_stop("quantise: not within the device");
  shadow_enter();
  tarn_status status = tarn__device_cpu.quantise(values, scales, weight, threads);
  shadow_leave();
  return status;
}

static inline double shadow_grad_norm(tarn__param *const *params, size_t count, int threads) {
  shadow_check_params(params, count);
  shadow_enter();
  const double norm = tarn__device_cpu.grad_norm(params, count, threads);
  shadow_leave();
  return norm;
}

static inline void shadow_adam_step(tarn__param *const *params, size_t count, const struct tarn__adam_factors *factors,
                                    int threads) {
  shadow_check_params(params, count);
  shadow_enter();
  tarn__device_cpu.adam_step(params, count, factors, threads);
  shadow_leave();
}

static inline void shadow_grad_sum_add(const tarn__param *param) {
  if (!shadow_holds(param)) shadow_stop("grad_sum_add: not within the device");
  shadow_enter();
  tarn__device_cpu.grad_sum_add(param);
  shadow_leave();
}

static inline void shadow_ridge_add(const tarn__ridge *ridge) {
  if (!shadow_owns(ridge->products) || !shadow_owns(ridge->waiting)) shadow_stop("ridge_add: not within the device");
  shadow_enter();
  tarn__device_cpu.ridge_add(ridge);
  shadow_leave();
}

static inline void shadow_ridge_take(const tarn__ridge *ridge, const void *rows, tarn__dtype dtype, int64_t first,
                                     int64_t count) {
  if (!shadow_owns(ridge->waiting) || (count > 0 && !shadow_owns(rows)))
    shadow_stop("ridge_take: not within the device");
  shadow.taken++;
  shadow_enter();
  tarn__device_cpu.ridge_take(ridge, rows, dtype, first, count);
  shadow_leave();
}

static inline bool shadow_cholesky(double *a, int64_t n, double least) {
  if (!shadow_owns(a)) shadow_stop("cholesky: not within the device");
  shadow_enter();
  const bool done = tarn__device_cpu.cholesky(a, n, least);
  shadow_leave();
  return done;
}

static inline const char *shadow_variant(void) { return tarn__device_cpu.variant(); }

static const tarn__device shadow_device = {.name = "shadow",
                                           .variant = shadow_variant,
                                           .ops = TARN__OPS,
                                           .split_lacks = shadow_split_lacks,
                                           .kernels = {[TARN__F32] = shadow_kernels, [TARN__BF16] = shadow_kernels},
                                           .allocate = shadow_allocate,
                                           .free = shadow_free,
                                           .copy_in = shadow_copy_in,
                                           .copy_out = shadow_copy_out,
                                           .copy = shadow_copy,
                                           .fill = shadow_fill,
                                           .synchronise = shadow_synchronise,
                                           .absolute_sum = shadow_absolute_sum,
                                           .add_scaled = shadow_add_scaled,
                                           .pack_bytes = shadow_pack_bytes,
                                           .pack = shadow_pack,
                                           .quantise = shadow_quantise,
                                           .grad_norm = shadow_grad_norm,
                                           .adam_step = shadow_adam_step,
                                           .grad_sum_add = shadow_grad_sum_add,
                                           .ridge_add = shadow_ridge_add,
                                           .ridge_take = shadow_ridge_take,
                                           .cholesky = shadow_cholesky};

#endif
