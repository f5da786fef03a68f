// Lent memory: blocks never overlap, what does not fit comes from the system, and nothing leaks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/random.h"
#include "base/region.h"

enum { BYTES = 64 * 100, BLOCKS = 40 };

static _Alignas(64) char lent[BYTES];

static bool inside(const void *p) { return (uintptr_t)p >= (uintptr_t)lent && (uintptr_t)p < (uintptr_t)lent + BYTES; }

static void nothing_lent(void **state) {
  (void)state;
  tarn__region region = {0};
  size_t before = tarn__memory_now(TARN__MEMORY_ACTIVATION);
  void *block;
  assert_int_equal(tarn__region_alloc(&region, &block, TARN__MEMORY_ACTIVATION, 10, 10), TARN_STATUS_OK);
  assert_int_equal(tarn__memory_now(TARN__MEMORY_ACTIVATION), before + 100);
  tarn__region_free(&region, block);
  tarn__region_free(&region, NULL);
  assert_int_equal(tarn__memory_now(TARN__MEMORY_ACTIVATION), before);
  tarn__region_close(&region);
}

static void first_fit(void **state) {
  (void)state;
  tarn__region region = {0};
  void *a;
  void *b;
  void *c;
  tarn__region_lend(&region, lent, BYTES);
  assert_int_equal(tarn__region_alloc(&region, &a, TARN__MEMORY_OTHER, 64 * 50, 1), TARN_STATUS_OK);
  assert_int_equal(tarn__region_alloc(&region, &b, TARN__MEMORY_OTHER, 64 * 50, 1), TARN_STATUS_OK);
  assert_ptr_equal(a, lent);
  assert_ptr_equal(b, lent + 64 * 50);
  assert_int_equal(tarn__region_alloc(&region, &c, TARN__MEMORY_OTHER, 1, 1), TARN_STATUS_OK);
  assert_false(inside(c));
  tarn__region_free(&region, a);
  tarn__region_free(&region, c);
  assert_int_equal(tarn__region_alloc(&region, &c, TARN__MEMORY_OTHER, 64 * 50, 1), TARN_STATUS_OK);
  assert_ptr_equal(c, lent);
  assert_int_equal(tarn__region_alloc(&region, &a, TARN__MEMORY_OTHER, SIZE_MAX, 2), TARN_STATUS_DATA);
  tarn__region_free(&region, b);
  tarn__region_free(&region, c);
  assert_int_equal(region.count, 0);
  tarn__region_close(&region);
}

static void random_blocks_keep_their_bytes(void **state) {
  (void)state;
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  tarn__region region = {0};
  tarn__random random;
  unsigned char *blocks[BLOCKS] = {0};
  size_t sizes[BLOCKS] = {0};
  int lent_blocks = 0;
  tarn__random_init(&random, 5, 0);
  tarn__region_lend(&region, lent, BYTES);
  for (int round = 0; round < 4000; round++) {
    size_t i = (size_t)tarn__random_below(&random, BLOCKS);
    if (blocks[i]) {
      for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], (unsigned char)(i + 1));
      tarn__region_free(&region, blocks[i]);
      blocks[i] = NULL;
      continue;
    }
    void *memory;
    sizes[i] = 1 + (size_t)tarn__random_below(&random, 600);
    assert_int_equal(tarn__region_alloc(&region, &memory, TARN__MEMORY_OTHER, sizes[i], 1), TARN_STATUS_OK);
    blocks[i] = memory;
    assert_int_equal((uintptr_t)memory % 64, 0);
    lent_blocks += inside(memory);
    memset(memory, (int)i + 1, sizes[i]);
  }
  assert_true(lent_blocks > 500);
  for (int i = 0; i < BLOCKS; i++) tarn__region_free(&region, blocks[i]);
  tarn__region_close(&region);
  assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_lent), cmocka_unit_test(first_fit),
                                     cmocka_unit_test(random_blocks_keep_their_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
