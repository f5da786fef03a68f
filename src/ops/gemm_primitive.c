// The only file that includes oneDNN. Both of its C interfaces, 2.x and 3.x, are accepted.
#include "ops/gemm_primitive.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ops/isa.h"

enum { BUCKETS = 512, CAPACITY = 1024 };

struct tarn__primitive {
  tarn__primitive_key key;
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;
  size_t scratch;
  int users;
  uint64_t used;  // time of the last use
  tarn__primitive *next;
};

static struct {
  pthread_mutex_t lock;
  dnnl_engine_t engine;
  dnnl_stream_t stream;  // shared: on a processor it has no state
  uint64_t clock;
  int count;
  tarn__primitive *bucket[BUCKETS];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tarn_status check(dnnl_status_t status, const char *what) {
  if (status == dnnl_success) return TARN_STATUS_OK;
  return tarn__fail(status == dnnl_out_of_memory ? TARN_STATUS_MEMORY : TARN_STATUS_INTERNAL,
                    "oneDNN refuses to %s (status %d)", what, (int)status);
}

// The lock is held. Before the first use of the library, because its instruction set cannot be changed later.
static tarn_status open_engine(void) {
  if (cache.stream != NULL) return TARN_STATUS_OK;
  tarn__isa isa = tarn__isa_now();
  if (cache.engine == NULL && isa != TARN__ISA_AVX512_BF16) {
    dnnl_cpu_isa_t limit = isa == TARN__ISA_AVX512 ? dnnl_cpu_isa_avx512_core
                           : isa == TARN__ISA_AVX2 ? dnnl_cpu_isa_avx2
                                                   : dnnl_cpu_isa_sse41;
    // "Unimplemented" on processors other than x86, where there is nothing to limit.
    dnnl_status_t status = dnnl_set_max_cpu_isa(limit);
    if (status != dnnl_unimplemented) TARN_TRY(check(status, "limit the instruction set"));
  }
  if (cache.engine == NULL) TARN_TRY(check(dnnl_engine_create(&cache.engine, dnnl_cpu, 0), "make an engine"));
  return check(dnnl_stream_create(&cache.stream, cache.engine, dnnl_stream_default_flags), "make a stream");
}

// What differs between the two interfaces: memory descriptors are structures in 2.x and objects in 3.x, and the
// description of an operation of its own (dnnl_matmul_desc_t) went away.
#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t desc_init(dnnl_memory_desc_t *desc, const dnnl_dims_t dims, dnnl_data_type_t type,
                               const dnnl_dims_t strides) {
  return dnnl_memory_desc_create_with_strides(desc, 2, dims, type, strides);
}
static void desc_drop(dnnl_memory_desc_t *desc) {
  if (*desc != NULL) dnnl_memory_desc_destroy(*desc);
}
static dnnl_status_t append_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}
static dnnl_status_t append_relu(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
}
static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *out, dnnl_memory_desc_t desc[4], bool bias,
                                 const_dnnl_primitive_attr_t attr) {
  return dnnl_matmul_primitive_desc_create(out, cache.engine, desc[0], desc[1], bias ? desc[2] : NULL, desc[3], attr);
}
#else
static dnnl_status_t desc_init(dnnl_memory_desc_t *desc, const dnnl_dims_t dims, dnnl_data_type_t type,
                               const dnnl_dims_t strides) {
  return dnnl_memory_desc_init_by_strides(desc, 2, dims, type, strides);
}
static void desc_drop(dnnl_memory_desc_t *desc) { (void)desc; }
static dnnl_status_t append_sum(dnnl_post_ops_t ops) { return dnnl_post_ops_append_sum(ops, 1.0f); }
static dnnl_status_t append_relu(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}
static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *out, dnnl_memory_desc_t desc[4], bool bias,
                                 const_dnnl_primitive_attr_t attr) {
  dnnl_matmul_desc_t matmul;
  dnnl_status_t status = dnnl_matmul_desc_init(&matmul, &desc[0], &desc[1], bias ? &desc[2] : NULL, &desc[3]);
  return status == dnnl_success ? dnnl_primitive_desc_create(out, &matmul, attr, cache.engine, NULL) : status;
}
#endif

static dnnl_status_t attributes(dnnl_primitive_attr_t *attr, dnnl_post_ops_t *ops, const tarn__primitive_key *key) {
  dnnl_status_t status = dnnl_primitive_attr_create(attr);
  if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
  if (status == dnnl_success) status = dnnl_post_ops_create(ops);
  if (status == dnnl_success && key->accumulate) status = append_sum(*ops);
  if (status == dnnl_success && key->relu) status = append_relu(*ops);
  return status == dnnl_success ? dnnl_primitive_attr_set_post_ops(*attr, *ops) : status;
}

static dnnl_status_t describe(dnnl_memory_desc_t desc[4], const tarn__primitive_key *key) {
  dnnl_data_type_t type = key->dtype == TARN__BF16 ? dnnl_bf16 : dnnl_f32;
  dnnl_data_type_t c_type = key->c_dtype == TARN__BF16 ? dnnl_bf16 : dnnl_f32;
  dnnl_dims_t a = {key->m, key->k}, b = {key->k, key->n}, bias = {1, key->n}, c = {key->m, key->n};
  dnnl_dims_t a_strides = {key->transpose_a ? 1 : key->lda, key->transpose_a ? key->lda : 1};
  dnnl_dims_t b_strides = {key->transpose_b ? 1 : key->ldb, key->transpose_b ? key->ldb : 1};
  dnnl_dims_t bias_strides = {key->n, 1}, c_strides = {key->ldc, 1};
  dnnl_status_t status = desc_init(&desc[0], a, type, a_strides);
  if (status == dnnl_success) status = desc_init(&desc[1], b, type, b_strides);
  if (status == dnnl_success) status = desc_init(&desc[2], bias, dnnl_f32, bias_strides);
  return status == dnnl_success ? desc_init(&desc[3], c, c_type, c_strides) : status;
}

static void destroy(tarn__primitive *p) {
  if (p == NULL) return;
  if (p->primitive != NULL) dnnl_primitive_destroy(p->primitive);
  if (p->desc != NULL) dnnl_primitive_desc_destroy(p->desc);
  tarn__free(p);
}

static dnnl_status_t compile(tarn__primitive *p) {
  dnnl_memory_desc_t desc[4];
  memset(desc, 0, sizeof desc);
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t ops = NULL;
  // A primitive divides its work by the number of threads at the time of its making.
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  dnnl_status_t status = describe(desc, &p->key);
  if (status == dnnl_success) status = attributes(&attr, &ops, &p->key);
  if (status == dnnl_success) status = matmul_desc(&p->desc, desc, p->key.bias, attr);
  if (status == dnnl_success) status = dnnl_primitive_create(&p->primitive, p->desc);
  omp_set_num_threads(threads);
  if (ops != NULL) dnnl_post_ops_destroy(ops);
  if (attr != NULL) dnnl_primitive_attr_destroy(attr);
  for (int i = 0; i < 4; i++) desc_drop(&desc[i]);
  return status;
}

// The lock is held.
static tarn_status make(tarn__primitive **out, const tarn__primitive_key *key) {
  TARN_TRY(open_engine());
  void *memory = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__primitive)));
  tarn__primitive *p = memory;
  p->key = *key;
  tarn_status status = check(compile(p), "compile a product");
  if (status != TARN_STATUS_OK) {
    destroy(p);
    return status;
  }
  p->scratch = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(p->desc, dnnl_query_scratchpad_md, 0));
  *out = p;
  return TARN_STATUS_OK;
}

static uint32_t hash(const tarn__primitive_key *key) {
  const unsigned char *bytes = (const unsigned char *)key;
  uint32_t h = 2166136261u;  // FNV-1a
  for (size_t i = 0; i < sizeof *key; i++) h = (h ^ bytes[i]) * 16777619u;
  return (h ^ h >> 15) % BUCKETS;
}

// The lock is held. Drops the primitive that nobody uses and that was used longest ago.
static void drop_oldest(void) {
  tarn__primitive **oldest = NULL;
  for (int b = 0; b < BUCKETS; b++)
    for (tarn__primitive **at = &cache.bucket[b]; *at != NULL; at = &(*at)->next)
      if ((*at)->users == 0 && (oldest == NULL || (*at)->used < (*oldest)->used)) oldest = at;
  if (oldest == NULL) return;
  tarn__primitive *p = *oldest;
  *oldest = p->next;
  cache.count--;
  destroy(p);
}

tarn_status tarn__primitive_acquire(tarn__primitive **primitive, const tarn__primitive_key *key) {
  *primitive = NULL;
  uint32_t b = hash(key);
  tarn_status status = TARN_STATUS_OK;
  pthread_mutex_lock(&cache.lock);
  tarn__primitive *p = cache.bucket[b];
  while (p != NULL && memcmp(&p->key, key, sizeof *key) != 0) p = p->next;
  if (p == NULL) {
    if (cache.count >= CAPACITY) drop_oldest();
    status = make(&p, key);
    if (status == TARN_STATUS_OK) {
      p->next = cache.bucket[b];
      cache.bucket[b] = p;
      cache.count++;
    }
  }
  if (status == TARN_STATUS_OK) {
    p->users++;
    p->used = ++cache.clock;
    *primitive = p;
  }
  pthread_mutex_unlock(&cache.lock);
  return status;
}

void tarn__primitive_release(tarn__primitive *primitive) {
  pthread_mutex_lock(&cache.lock);
  primitive->users--;
  pthread_mutex_unlock(&cache.lock);
}

size_t tarn__primitive_scratch(const tarn__primitive *primitive) { return primitive->scratch; }

tarn_status tarn__primitive_run(const tarn__primitive *primitive, const void *a, const void *b, const float *bias,
                                void *c, void *scratch) {
  enum { ARGUMENTS = 5 };
  static const struct {
    int argument, index;
    dnnl_query_t query;
  } slot[ARGUMENTS] = {{DNNL_ARG_SRC, 0, dnnl_query_src_md},
                       {DNNL_ARG_WEIGHTS, 0, dnnl_query_weights_md},
                       {DNNL_ARG_DST, 0, dnnl_query_dst_md},
                       {DNNL_ARG_SCRATCHPAD, 0, dnnl_query_scratchpad_md},
                       {DNNL_ARG_BIAS, 1, dnnl_query_weights_md}};
  // The library takes all addresses as void *; it only writes to the last two of the four.
  union {
    const void *in;
    void *address;
  } at[ARGUMENTS] = {{a}, {b}, {c}, {scratch}, {bias}};
  dnnl_exec_arg_t arguments[ARGUMENTS];
  int count = 0, wanted = primitive->key.bias ? ARGUMENTS : ARGUMENTS - 1;
  dnnl_status_t status = dnnl_success;
  for (; count < wanted && status == dnnl_success; count++) {
    arguments[count].arg = slot[count].argument;
    arguments[count].memory = NULL;
    status = dnnl_memory_create(&arguments[count].memory,
                                dnnl_primitive_desc_query_md(primitive->desc, slot[count].query, slot[count].index),
                                cache.engine, at[count].address);
  }
  if (status == dnnl_success) status = dnnl_primitive_execute(primitive->primitive, cache.stream, wanted, arguments);
  for (int i = 0; i < count; i++)
    if (arguments[i].memory != NULL) dnnl_memory_destroy(arguments[i].memory);
  return check(status, "run a product");
}

const char *tarn__primitive_library(void) {
  static char text[48];
  const dnnl_version_t *version = dnnl_version();
  snprintf(text, sizeof text, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
  return text;
}
