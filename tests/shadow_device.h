// An asynchronous device whose memory the host cannot access (shadow_stream.h): the processor's kernels on memory that
// is mapped separately and protected except while a kernel or copy runs. Any access outside the interface faults at
// once, so code that passes here works on a device with its own memory and asynchronous execution. Conversely, kernels
// reject tensors in host memory.
//
// With several decoders on separate threads, the memory is accessible to all of them while one computes.
#ifndef TARN_TESTS_SHADOW_DEVICE_H
#define TARN_TESTS_SHADOW_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/devices.h"
#include "device/op_list.h"
#include "graph/graph.h"
#include "optim/adam.h"
#include "optim/ridge.h"
#include "shadow_stream.h"

typedef struct shadow_block {
  struct shadow_block *next;
  char *memory;
  size_t bytes;
} shadow_block;

static struct {
  pthread_mutex_t lock;
  shadow_block *blocks;
  int inside;        // kernels and copies now running
  size_t now, most;  // bytes, in whole pages
  // Counted by all ranks and streams, whose threads run at once.
  atomic_int sums, means;      // calls that compute AutoFreeze's norms, and averages of checkpoints
  atomic_int taken;            // calls that take device rows as samples of a regression
  atomic_int_least64_t reads;  // copies to the host
} shadow = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static inline tarn_status shadow_allocate(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count,
                                          size_t size) {
  (void)device;
  (void)kind;
  size_t bytes;
  *out = NULL;
  TARN_TRY(tarn__mul_size(&bytes, count, size));
  shadow_block *block = malloc(sizeof *block);
  TARN_REQUIRE(block, MEMORY, "shadow device: out of memory");
  pthread_mutex_lock(&shadow.lock);
  block->bytes = (bytes + 4096) & ~(size_t)4095;  // at least a page
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

static inline void shadow_free(const tarn__device *device, void *memory) {
  (void)device;
  if (!memory) return;
  shadow_synchronise_all();
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

// Reports the host's memory, so that plans have a limit.
static inline tarn_status shadow_memory(const tarn__device *device, size_t *available, size_t *total) {
  return tarn__device_cpu.type->memory(device, available, total);
}

// --- staging memory

typedef struct shadow_staging {
  struct shadow_staging *next;
  size_t bytes;
  max_align_t memory[];
} shadow_staging;

static shadow_staging *shadow_stagings;

static inline tarn_status shadow_staging_allocate(const tarn__device *device, void **out, size_t bytes) {
  (void)device;
  shadow_staging *staging = calloc(1, sizeof *staging + bytes);
  if (!staging) shadow_stop("out of memory");
  staging->bytes = bytes;
  pthread_mutex_lock(&shadow.lock);
  staging->next = shadow_stagings;
  shadow_stagings = staging;
  pthread_mutex_unlock(&shadow.lock);
  *out = staging->memory;
  return TARN_STATUS_OK;
}

static inline void shadow_staging_free(const tarn__device *device, void *memory) {
  (void)device;
  if (!memory) return;
  pthread_mutex_lock(&shadow.lock);
  shadow_staging **at = &shadow_stagings;
  while (*at && (void *)(*at)->memory != memory) at = &(*at)->next;
  shadow_staging *staging = *at;
  if (!staging) shadow_stop("staging memory is freed that it did not give");
  *at = staging->next;
  pthread_mutex_unlock(&shadow.lock);
  free(staging);
}

static inline bool shadow_stages(const void *memory, size_t bytes) {
  bool is = false;
  pthread_mutex_lock(&shadow.lock);
  for (const shadow_staging *s = shadow_stagings; s; s = s->next)
    is |= (const char *)memory >= (const char *)s->memory &&
          (const char *)memory + bytes <= (const char *)s->memory + s->bytes;
  pthread_mutex_unlock(&shadow.lock);
  return is;
}

// --- copies

typedef struct shadow_move {
  void *to;
  const void *from;  // NULL: the bytes follow this struct
  size_t bytes;
  int byte;      // of a fill
  int64_t rows;  // of rows to move, whose numbers follow this struct
  max_align_t more[];
} shadow_move;

static inline tarn_status shadow_do_copy(void *arguments) {
  const shadow_move *m = arguments;
  shadow_enter();
  memcpy(m->to, m->from ? m->from : m->more, m->bytes);
  shadow_leave();
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_do_fill(void *arguments) {
  const shadow_move *m = arguments;
  shadow_enter();
  memset(m->to, m->byte, m->bytes);
  shadow_leave();
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_do_move_rows(void *arguments) {
  const shadow_move *m = arguments;
  shadow_enter();
  const tarn_status status = tarn__device_cpu.type->move_rows(&tarn__device_cpu, NULL, m->to, m->from, m->bytes,
                                                              (const int32_t *)(const void *)m->more, m->rows);
  shadow_leave();
  return status;
}

static inline void shadow_ask_with(tarn__device_stream *stream, tarn_status (*run)(void *), const shadow_move *move,
                                   const void *more, size_t bytes) {
  shadow_command *command = shadow_command_new(run, sizeof *move + bytes);
  shadow_move *m = (void *)command->arguments;
  *m = *move;
  memcpy(m->more, more, bytes);
  shadow_append(stream, command);
}

// The bytes are copied immediately.
static inline tarn_status shadow_copy_in(const tarn__device *device, tarn__device_stream *stream, void *to,
                                         const void *from, size_t bytes) {
  (void)device;
  if (!shadow_owns(to) || shadow_owns(from)) shadow_stop("copy_in: not from the host to the device");
  shadow_ask_with(stream, shadow_do_copy, &(shadow_move){.to = to, .bytes = bytes}, from, bytes);
  return TARN_STATUS_OK;
}

// The bytes are read when the stream executes the command.
static inline tarn_status shadow_send(const tarn__device *device, tarn__device_stream *stream, void *to,
                                      const void *from, size_t bytes) {
  (void)device;
  if (!shadow_owns(to) || !shadow_stages(from, bytes)) shadow_stop("send: not from staging memory to the device");
  const shadow_move move = {.to = to, .from = from, .bytes = bytes};
  return shadow_ask(stream, shadow_do_copy, &move, sizeof move);
}

static inline tarn_status shadow_copy_out(const tarn__device *device, tarn__device_stream *stream, void *to,
                                          const void *from, size_t bytes) {
  if (shadow_owns(to) || !shadow_owns(from)) shadow_stop("copy_out: not from the device to the host");
  const shadow_move move = {.to = to, .from = from, .bytes = bytes};
  TARN_TRY(shadow_ask(stream, shadow_do_copy, &move, sizeof move));
  shadow.reads++;
  return shadow_synchronise(device, stream);
}

static inline tarn_status shadow_copy(const tarn__device *device, tarn__device_stream *stream, void *to,
                                      const void *from, size_t bytes) {
  (void)device;
  if (!shadow_owns(to) || !shadow_owns(from)) shadow_stop("copy: not within the device");
  const shadow_move move = {.to = to, .from = from, .bytes = bytes};
  return shadow_ask(stream, shadow_do_copy, &move, sizeof move);
}

static inline tarn_status shadow_fill(const tarn__device *device, tarn__device_stream *stream, void *to,
                                      unsigned char byte, size_t bytes) {
  (void)device;
  if (!shadow_owns(to)) shadow_stop("fill: not within the device");
  const shadow_move move = {.to = to, .byte = byte, .bytes = bytes};
  return shadow_ask(stream, shadow_do_fill, &move, sizeof move);
}

static inline tarn_status shadow_move_rows(const tarn__device *device, tarn__device_stream *stream, void *to,
                                           const void *from, size_t bytes, const int32_t *numbers, int64_t rows) {
  (void)device;
  if (!shadow_owns(to) || !shadow_owns(from)) shadow_stop("move_rows: not within the device");
  const shadow_move move = {.to = to, .from = from, .bytes = bytes, .rows = rows};
  shadow_ask_with(stream, shadow_do_move_rows, &move, numbers, (size_t)rows * sizeof *numbers);
  return TARN_STATUS_OK;
}

// --- calls that return a number, or take all they need as arguments

static inline tarn_status shadow_absolute_sum(const tarn__device *device, double *sum, const float *x, size_t n) {
  if (!shadow_owns(x)) shadow_stop("absolute_sum: not within the device");
  shadow.sums++;
  TARN_TRY(shadow_synchronise(device, NULL));
  shadow_enter();
  tarn_status status = tarn__device_absolute_sum(&tarn__device_cpu, sum, x, n);
  shadow_leave();
  return status;
}

typedef struct shadow_scaled {
  float *sums;
  const void *values;
  size_t n;
  double weight;
} shadow_scaled;

static inline tarn_status shadow_do_add_scaled(void *arguments) {
  const shadow_scaled *a = arguments;
  shadow_enter();
  tarn_status status = tarn__device_add_scaled(&tarn__device_cpu, a->sums, a->values, a->n, a->weight);
  shadow_leave();
  return status;
}

static inline tarn_status shadow_add_scaled(const tarn__device *device, float *sums, const void *values, size_t n,
                                            double weight) {
  (void)device;
  if (!shadow_owns(sums) || !shadow_owns(values)) shadow_stop("add_scaled: not within the device");
  shadow.means++;
  return shadow_ask(NULL, shadow_do_add_scaled, &(shadow_scaled){sums, values, n, weight}, sizeof(shadow_scaled));
}

// --- nodes

static inline tarn_status shadow_check(const tarn__node *node, const tarn__tensor *tensor) {
  TARN_REQUIRE(!tensor || !tensor->data || shadow_owns(tensor->data), INTERNAL,
               "shadow device: %s is given %s in the memory of the host", node->op->name, tensor->name);
  return TARN_STATUS_OK;
}

// The address sanitizer maps so much memory that two adjacent small numbers look like an address.
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

// Whether a word of a node's attributes is an address in memory that the host has mapped.
static inline bool shadow_is_address(uintptr_t word) {
  if (!SHADOW_TELLS_ADDRESSES) return false;
  unsigned char resident;
  const uintptr_t page = word & ~(uintptr_t)4095;
  // Half of the word may be a small number and the other half uninitialised padding.
  if ((uint32_t)word < 65536) return false;
  return page != 0 && mincore((void *)page, 1, &resident) == 0;
}

// Attributes are copied to the device with the call; data at an address would not be. Marks compute nothing.
static inline tarn_status shadow_check_attributes(const tarn__node *node) {
  for (size_t at = 0; at + sizeof(uintptr_t) <= node->attr_bytes && node->op->id != TARN__OP_MARK;
       at += sizeof(uintptr_t)) {
    uintptr_t word;
    memcpy(&word, (const char *)node->attr + at, sizeof word);
    TARN_REQUIRE(!shadow_is_address(word), INTERNAL, "shadow device: an attribute of %s is an address", node->op->name);
  }
  return TARN_STATUS_OK;
}

// Checks every array that training keeps for a parameter.
static inline bool shadow_holds(const tarn__param *param) {
  const tarn__param_training *t = &param->training;
  const void *const arrays[] = {param->value, t->master, t->grad, t->used_rows, t->moment1, t->moment2, t->grad_sum};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
    if (arrays[i] && !shadow_owns(arrays[i])) return false;
  return true;
}

static inline void shadow_check_params(const tarn__param_table *table) {
  for (size_t i = 0; i < table->count; i++)
    if (!shadow_holds(table->params[i])) shadow_stop("an array of a parameter is in the memory of the host");
}

// The processor uses one table of kernels for both of its types.
static inline const tarn__device_kernel *shadow_kernel(const tarn__node *node) {
  return &tarn__device_cpu.type->kernels[TARN__F32][node->op->id];
}

// A snapshot of a node, with everything a kernel reads from the host: the graph may be gone, and its parameters
// changed, when the kernel runs.
enum { SHADOW_TENSORS = TARN__MAX_INPUTS + TARN__MAX_OUTPUTS + TARN__MAX_PARAM_GRADS, SHADOW_PARAMS = SHADOW_TENSORS };
typedef struct shadow_job {
  tarn__exec exec;
  tarn__adam_factors factors;
  tarn__node node;
  tarn__tensor tensors[SHADOW_TENSORS];
  tarn__param params[SHADOW_PARAMS];
  const tarn__param *of[SHADOW_PARAMS];
  int tensor_count, param_count;
  max_align_t attributes[];
} shadow_job;

static inline tarn__param *shadow_param(shadow_job *job, tarn__param *param) {
  if (!param) return NULL;
  int k = 0;
  while (k < job->param_count && job->of[k] != param) k++;
  if (k == job->param_count) {
    job->of[k] = param;
    job->params[k] = *param;
    job->param_count++;
  }
  return &job->params[k];
}

static inline tarn__tensor *shadow_tensor(shadow_job *job, const tarn__tensor *tensor) {
  if (!tensor) return NULL;
  tarn__tensor *copy = &job->tensors[job->tensor_count++];
  *copy = *tensor;
  copy->host = NULL;
  copy->source = NULL;
  copy->shares = copy->grad = copy->tangent = copy->again = NULL;
  copy->param = shadow_param(job, tensor->param);
  return copy;
}

static inline tarn_status shadow_do_node(void *arguments) {
  shadow_job *job = arguments;
  shadow_enter();
  const tarn_status status = shadow_kernel(&job->node)->run(&job->exec, &job->node);
  shadow_leave();
  return status;
}

static inline void shadow_ask_node(const tarn__exec *exec, const tarn__node *node) {
  shadow_command *command = shadow_command_new(shadow_do_node, sizeof(shadow_job) + node->attr_bytes);
  shadow_job *job = (void *)command->arguments;
  job->exec = *exec;
  job->exec.profile = NULL;
  if (exec->update) job->factors = *exec->update, job->exec.update = &job->factors;
  job->node = *node;
  if (node->attr_bytes > 0) memcpy(job->attributes, node->attr, node->attr_bytes);
  job->node.attr = node->attr_bytes > 0 ? job->attributes : NULL;
  for (int i = 0; i < TARN__MAX_INPUTS; i++) job->node.in[i] = shadow_tensor(job, node->in[i]);
  for (int i = 0; i < TARN__MAX_OUTPUTS; i++) job->node.out[i] = shadow_tensor(job, node->out[i]);
  for (int i = 0; i < TARN__MAX_PARAM_GRADS; i++) {
    job->node.dparam_grad[i] = shadow_tensor(job, node->dparam_grad[i]);
    job->node.dparam[i] = shadow_param(job, node->dparam[i]);
  }
  // The kernel will set this too: the choice between overwriting and adding was made by the call.
  for (int i = 0; i < TARN__MAX_PARAM_GRADS; i++)
    if (node->dparam[i]) node->dparam[i]->training.grad_written = true;
  shadow_append(exec->stream, command);
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
  TARN_REQUIRE(!exec->squares || shadow_owns(exec->squares), INTERNAL,
               "shadow device: %s adds to a number in the memory of the host", node->op->name);
  TARN_TRY(shadow_check_attributes(node));
  shadow_ask_node(exec, node);
  return TARN_STATUS_OK;
}

static inline size_t shadow_scratch(const tarn__node *node, int threads) {
  const tarn__device_kernel *kernel = shadow_kernel(node);
  return kernel->scratch ? kernel->scratch(node, threads) : 0;
}

#define SHADOW_ENTRY(word) [TARN__OP_##word] = {shadow_run, shadow_scratch},
static const tarn__device_kernel shadow_kernels[TARN__OPS] = {TARN__OP_LIST(SHADOW_ENTRY)};
#undef SHADOW_ENTRY

// --- weights

static inline const char *shadow_fp32_lacks(const tarn__device *device, tarn__fp32 fp32) {
  return tarn__device_cpu.type->fp32_lacks(device, fp32);
}

static inline size_t shadow_pack_bytes(const tarn__device *device, const tarn__device_weight *weight) {
  return tarn__device_cpu.type->pack_bytes(device, weight);
}

typedef struct shadow_packing {
  void *packed;
  float *scales;
  tarn__device_weight weight;
  int threads;
} shadow_packing;

static inline tarn_status shadow_do_pack(void *arguments) {
  const shadow_packing *p = arguments;
  shadow_enter();
  tarn_status status =
      p->scales ? tarn__device_cpu.type->quantise(&tarn__device_cpu, p->packed, p->scales, &p->weight, p->threads)
                : tarn__device_cpu.type->pack(&tarn__device_cpu, p->packed, &p->weight, p->threads);
  shadow_leave();
  return status;
}

static inline tarn_status shadow_pack(const tarn__device *device, void *packed, const tarn__device_weight *weight,
                                      int threads) {
  (void)device;
  if (!shadow_owns(packed) || !shadow_owns(weight->value)) shadow_stop("pack: not within the device");
  const shadow_packing packing = {.packed = packed, .weight = *weight, .threads = threads};
  return shadow_ask(NULL, shadow_do_pack, &packing, sizeof packing);
}

static inline tarn_status shadow_quantise(const tarn__device *device, void *values, void *scales,
                                          const tarn__device_weight *weight, int threads) {
  (void)device;
  if (!shadow_owns(values) || !shadow_owns(scales) || !shadow_owns(weight->value))
    shadow_stop("quantise: not within the device");
  const shadow_packing packing = {.packed = values, .scales = scales, .weight = *weight, .threads = threads};
  return shadow_ask(NULL, shadow_do_pack, &packing, sizeof packing);
}

// --- the optimiser

typedef enum shadow_optimiser { SHADOW_NORM, SHADOW_STEP, SHADOW_SUMS } shadow_optimiser;

// A snapshot of the parameters of a table.
typedef struct shadow_update {
  shadow_optimiser what;
  double *norm;
  tarn__adam_factors factors;
  const tarn__step_numbers *numbers;
  int threads;
  size_t count;
  tarn__param *params;  // in its memory
} shadow_update;

static inline tarn_status shadow_do_update(void *arguments) {
  shadow_update *u = arguments;
  const tarn__device_type *cpu = tarn__device_cpu.type;
  tarn__param **list = malloc((u->count + 1) * sizeof *list);
  if (!list) shadow_stop("out of memory");
  for (size_t i = 0; i < u->count; i++) list[i] = &u->params[i];
  const tarn__param_table table = {.params = list, .count = u->count};
  shadow_enter();
  tarn_status status = u->what == SHADOW_NORM ? cpu->grad_norm(&tarn__device_cpu, u->norm, &table, u->threads)
                       : u->what == SHADOW_STEP
                           ? cpu->adam_step(&tarn__device_cpu, &table, &u->factors, u->numbers, u->threads)
                           : cpu->grad_sum_add(&tarn__device_cpu, &table, u->threads);
  shadow_leave();
  free(list);
  return status;
}

// The device's copy of a table, in its memory: the parameters at the last refresh. Updates read nothing else, so a
// missing refresh shows.
static inline tarn_status shadow_table(const tarn__device *device, tarn__param_table *table) {
  const size_t bytes = table->count * sizeof **table->params;
  shadow_check_params(table);
  if (!table->there) TARN_TRY(shadow_allocate(device, &table->there, TARN__MEMORY_OTHER, bytes, 1));
  for (size_t i = 0; i < table->count; i++)
    TARN_TRY(shadow_copy_in(device, NULL, (tarn__param *)table->there + i, table->params[i], sizeof **table->params));
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_ask_update(const shadow_update *update, const tarn__param_table *table) {
  if (!table->there) shadow_stop("the device has no copy of a table");
  shadow_update u = *update;
  u.count = table->count;
  u.params = table->there;
  TARN_TRY(shadow_ask(NULL, shadow_do_update, &u, sizeof u));
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_grad_norm(const tarn__device *device, double *norm, const tarn__param_table *table,
                                           int threads) {
  (void)device;
  if (!shadow_owns(norm)) shadow_stop("grad_norm: not within the device");
  return shadow_ask_update(&(shadow_update){.what = SHADOW_NORM, .norm = norm, .threads = threads}, table);
}

static inline tarn_status shadow_adam_step(const tarn__device *device, const tarn__param_table *table,
                                           const tarn__adam_factors *factors, const tarn__step_numbers *numbers,
                                           int threads) {
  (void)device;
  if (numbers && !shadow_owns(numbers)) shadow_stop("adam_step: numbers that are not within the device");
  const shadow_update update = {.what = SHADOW_STEP, .factors = *factors, .numbers = numbers, .threads = threads};
  return shadow_ask_update(&update, table);
}

static inline tarn_status shadow_grad_sum_add(const tarn__device *device, const tarn__param_table *table, int threads) {
  (void)device;
  return shadow_ask_update(&(shadow_update){.what = SHADOW_SUMS, .threads = threads}, table);
}

typedef struct shadow_decision {
  tarn__step_numbers *numbers;
  const double *loss;  // NULL: decide
  tarn__step_rule rule;
} shadow_decision;

static inline tarn_status shadow_do_decide(void *arguments) {
  const shadow_decision *d = arguments;
  shadow_enter();
  if (d->loss)
    tarn__step_add_loss(d->numbers, d->loss);
  else
    tarn__step_decide(d->numbers, &d->rule);
  shadow_leave();
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_add_loss(const tarn__device *device, tarn__step_numbers *numbers, const double *loss) {
  (void)device;
  if (!shadow_owns(numbers) || !shadow_owns(loss)) shadow_stop("add_loss: not within the device");
  return shadow_ask(NULL, shadow_do_decide, &(shadow_decision){.numbers = numbers, .loss = loss},
                    sizeof(shadow_decision));
}

static inline tarn_status shadow_decide(const tarn__device *device, tarn__step_numbers *numbers,
                                        const tarn__step_rule *rule) {
  (void)device;
  if (!shadow_owns(numbers)) shadow_stop("decide: not within the device");
  return shadow_ask(NULL, shadow_do_decide, &(shadow_decision){.numbers = numbers, .rule = *rule},
                    sizeof(shadow_decision));
}

// --- ridge regression

typedef struct shadow_ridge {
  tarn__ridge ridge;
  const void *rows;  // NULL: add the samples
  tarn__dtype dtype;
  int64_t first, count;
} shadow_ridge;

static inline tarn_status shadow_do_ridge(void *arguments) {
  const shadow_ridge *r = arguments;
  const tarn__device_type *cpu = tarn__device_cpu.type;
  shadow_enter();
  tarn_status status = r->rows ? cpu->ridge_take(&tarn__device_cpu, &r->ridge, r->rows, r->dtype, r->first, r->count)
                               : cpu->ridge_add(&tarn__device_cpu, &r->ridge);
  shadow_leave();
  return status;
}

static inline tarn_status shadow_ridge_add(const tarn__device *device, const tarn__ridge *ridge) {
  (void)device;
  if (!shadow_owns(ridge->products) || !shadow_owns(ridge->waiting)) shadow_stop("ridge_add: not within the device");
  return shadow_ask(NULL, shadow_do_ridge, &(shadow_ridge){.ridge = *ridge}, sizeof(shadow_ridge));
}

static inline tarn_status shadow_ridge_take(const tarn__device *device, const tarn__ridge *ridge, const void *rows,
                                            tarn__dtype dtype, int64_t first, int64_t count) {
  (void)device;
  if (!shadow_owns(ridge->waiting) || (count > 0 && !shadow_owns(rows)))
    shadow_stop("ridge_take: not within the device");
  shadow.taken++;
  if (count == 0) return TARN_STATUS_OK;
  const shadow_ridge take = {.ridge = *ridge, .rows = rows, .dtype = dtype, .first = first, .count = count};
  return shadow_ask(NULL, shadow_do_ridge, &take, sizeof take);
}

static inline tarn_status shadow_cholesky(const tarn__device *device, bool *done, double *a, int64_t n, double least) {
  if (!shadow_owns(a)) shadow_stop("cholesky: not within the device");
  TARN_TRY(shadow_synchronise(device, NULL));
  shadow_enter();
  const tarn_status status = tarn__device_cpu.type->cholesky(&tarn__device_cpu, done, a, n, least);
  shadow_leave();
  return status;
}

static inline const char *shadow_variant(const tarn__device *device) {
  (void)device;
  return tarn__device_variant(&tarn__device_cpu);
}

static inline tarn_status shadow_open(const tarn__device **device, int ordinal);

static const tarn__device_type shadow_type = {.name = "shadow",
                                              .ops = TARN__OPS,
                                              .kernels = {[TARN__F32] = shadow_kernels, [TARN__BF16] = shadow_kernels},
                                              .open = shadow_open,
                                              .variant = shadow_variant,
                                              .fp32_lacks = shadow_fp32_lacks,
                                              .allocate = shadow_allocate,
                                              .free = shadow_free,
                                              .memory = shadow_memory,
                                              .stream_open = shadow_stream_open,
                                              .stream_close = shadow_stream_close,
                                              .event_open = shadow_event_open,
                                              .event_close = shadow_event_close,
                                              .record = shadow_record,
                                              .await = shadow_await,
                                              .synchronise_event = shadow_synchronise_event,
                                              .synchronise = shadow_synchronise,
                                              .copy_in = shadow_copy_in,
                                              .send = shadow_send,
                                              .copy_out = shadow_copy_out,
                                              .copy = shadow_copy,
                                              .fill = shadow_fill,
                                              .move_rows = shadow_move_rows,
                                              .staging_allocate = shadow_staging_allocate,
                                              .staging_free = shadow_staging_free,
                                              .table = shadow_table,
                                              .pack_bytes = shadow_pack_bytes,
                                              .pack = shadow_pack,
                                              .quantise = shadow_quantise,
                                              .grad_norm = shadow_grad_norm,
                                              .add_loss = shadow_add_loss,
                                              .decide = shadow_decide,
                                              .adam_step = shadow_adam_step,
                                              .grad_sum_add = shadow_grad_sum_add,
                                              .absolute_sum = shadow_absolute_sum,
                                              .add_scaled = shadow_add_scaled,
                                              .ridge_add = shadow_ridge_add,
                                              .ridge_take = shadow_ridge_take,
                                              .cholesky = shadow_cholesky};

static const tarn__device shadow_device = {.type = &shadow_type, .name = "shadow"};

static inline tarn_status shadow_open(const tarn__device **device, int ordinal) {
  (void)ordinal;
  *device = &shadow_device;
  return TARN_STATUS_OK;
}

#endif
