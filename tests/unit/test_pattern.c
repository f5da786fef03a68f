// The pattern language and the placements by rule.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/pattern.h"

static const tarn_kind kinds[] = {{.name = "L"}, {.name = "R"}, {.name = "big_kind"}};
static tarn_layer layers[TARN_CONFIG_LAYERS];
static int32_t count;

static tarn_status parse(const char *pattern) { return tarn__pattern_parse(layers, &count, pattern, kinds, 3, NULL); }

// The layers as "kind:set:first ...".
static void expect_layers(const char *pattern, const char *expected) {
  char text[1024] = "";
  if (parse(pattern) != TARN_STATUS_OK) fail_msg("%s: %s", pattern, tarn_error_message());
  for (int32_t i = 0; i < count; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s:%s:%d", i ? " " : "", kinds[layers[i].kind].name, layers[i].set,
             layers[i].first);
  }
  assert_string_equal(text, expected);
}

static void expect_error(const char *pattern, const char *message) {
  assert_int_equal(parse(pattern), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), message);
}

static void bare_uses_are_new_sets(void **state) {
  (void)state;
  expect_layers("L", "L:layer1:0");
  expect_layers("R L", "R:layer1:0 L:layer2:1");
  expect_layers("(R L)*2", "R:layer1:0 L:layer2:1 R:layer3:2 L:layer4:3");
  expect_layers("L*2 R", "L:layer1:0 L:layer2:1 R:layer3:2");
  expect_layers(" ( L ) * 2\n", "L:layer1:0 L:layer2:1");
  expect_layers("big_kind", "big_kind:layer1:0");
}

static void named_sets_are_shared(void **state) {
  (void)state;
  expect_layers("R1 L R1", "R:R1:0 L:layer2:1 R:R1:0");
  expect_layers("(R1 L1)*2", "R:R1:0 L:L1:1 R:R1:0 L:L1:1");
  expect_layers("R1 R2 R1 R2", "R:R1:0 R:R2:1 R:R1:0 R:R2:1");
  expect_layers("R12 R1*2", "R:R12:0 R:R1:1 R:R1:1");
}

static void nested_groups_repeat(void **state) {
  (void)state;
  expect_layers("((R1)*2 L)*2", "R:R1:0 R:R1:0 L:layer3:2 R:R1:0 R:R1:0 L:layer6:5");
  assert_int_equal(parse("((L*8)*8)*8"), TARN_STATUS_OK);
  assert_int_equal(count, 512);
}

static void errors_name_the_place(void **state) {
  (void)state;
  expect_error("", "the pattern is empty");
  expect_error("  ", "the pattern is empty");
  expect_error("(R L", "at character 1: this parenthesis is never closed");
  expect_error("R (L (R)", "at character 3: this parenthesis is never closed");
  expect_error("R L)*2", "at character 4: a parenthesis is closed that was not opened");
  expect_error("()*2", "at character 1: nothing in these parentheses");
  expect_error("*2 L", "at character 1: a * without an item before it");
  expect_error("L*", "at character 2: a number must follow the *");
  expect_error("L*0", "at character 2: an item is repeated 1 to 2048 times");
  expect_error("L*99999999999999999999", "at character 2: an item is repeated 1 to 2048 times");
  expect_error("L*2R", "at character 2: a space must follow a number of repeats");
  expect_error("L*2*2", "at character 2: a space must follow a number of repeats");
  expect_error("L*2 *2", "at character 2: a second *; put the first repeat in parentheses");
  expect_error("L R0", "at character 3: the number of a set is 1 to 9999, without a zero in front");
  expect_error("L R01", "at character 3: the number of a set is 1 to 9999, without a zero in front");
  expect_error("R1x", "at character 1: letters after the number of a set");
  expect_error("L, R", "at character 2: expected a kind or a parenthesis");
  expect_error("L big_kimd",
               "at character 3: kind \"big_kimd\" is not defined under kinds; did you mean \"big_kind\"?");
  expect_error("((L*8)*8)*33", "at character 10: more than 2048 layers");
  expect_error("L*2048 R", "at character 8: more than 2048 layers");
  expect_error("((((((((((((((((((L))))))))))))))))))", "at character 17: parentheses are nested too deeply");
}

// A pattern's canonical form, which must read back to the same layers.
static void expect_written(const char *pattern, const char *expected) {
  char text[TARN__PATTERN_TEXT];
  tarn_layer before[TARN_CONFIG_LAYERS];
  if (parse(pattern) != TARN_STATUS_OK) fail_msg("%s: %s", pattern, tarn_error_message());
  int32_t n = count;
  memcpy(before, layers, sizeof before);
  assert_int_equal(tarn__pattern_write(text, layers, count, kinds), TARN_STATUS_OK);
  if (expected) assert_string_equal(text, expected);
  assert_int_equal(parse(text), TARN_STATUS_OK);
  assert_int_equal(count, n);
  for (int32_t i = 0; i < n; i++) {
    assert_int_equal(before[i].kind, layers[i].kind);
    assert_int_equal(before[i].first, layers[i].first);
    assert_string_equal(before[i].set, layers[i].set);
  }
}

static void writing_is_canonical(void **state) {
  (void)state;
  expect_written("L", "L");
  expect_written("L L L", "L*3");
  expect_written("R L R L", "(R L)*2");
  expect_written("(R L R L)*2", "(R L)*4");
  expect_written("R1 L1 R2 L2 R1 L1 R2 L2", "(R1 L1 R2 L2)*2");
  expect_written("L L R L R L L L", "L*2 R L R L*3");
  expect_written("(L L R)*2", "(L*2 R)*2");
  expect_written("R1 R", "R1 R");
  expect_written("L*512", "L*512");
}

static void long_patterns_fit(void **state) {
  (void)state;
  char pattern[TARN__PATTERN_TEXT] = "";
  size_t used = 0;
  for (int i = 0; i < TARN_CONFIG_LAYERS; i++) {
    used += (size_t)snprintf(pattern + used, sizeof pattern - used, "big_kind%d ", 9999 - i);
  }
  expect_written(pattern, NULL);
}

static void expect_place(int reservoirs, int of, tarn__place_rule rule, const char *expected) {
  char text[TARN__PATTERN_TEXT];
  char squeezed[64] = "";
  const tarn__placement place = {reservoirs, of, rule, "L", "R"};
  if (tarn__place_pattern(text, &place) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  for (size_t i = 0; text[i]; i += 2) squeezed[i / 2] = text[i];
  assert_string_equal(squeezed, expected);
}

static void placements_follow_the_paper(void **state) {
  (void)state;
  expect_place(3, 7, TARN__PLACE_ALTERNATE, "LRLRLRL");
  expect_place(2, 7, TARN__PLACE_ALTERNATE, "LLRLRLL");
  expect_place(4, 8, TARN__PLACE_ALTERNATE, "RLRLRLRL");
  expect_place(2, 8, TARN__PLACE_ALTERNATE, "LLRLRLLL");
  expect_place(4, 7, TARN__PLACE_ALTERNATE, "RLRLRLR");
  expect_place(0, 3, TARN__PLACE_ALTERNATE, "LLL");
  expect_place(1, 1, TARN__PLACE_ALTERNATE, "R");
  expect_place(2, 6, TARN__PLACE_BOTTOM, "RRLLLL");
  expect_place(2, 6, TARN__PLACE_TOP, "LLLLRR");
  expect_place(2, 6, TARN__PLACE_MIDDLE, "LLRRLL");
  expect_place(2, 7, TARN__PLACE_MIDDLE, "LLRRLLL");
  expect_place(6, 6, TARN__PLACE_MIDDLE, "RRRRRR");
}

static void impossible_placements_are_refused(void **state) {
  (void)state;
  char text[TARN__PATTERN_TEXT];
  tarn__placement place = {5, 8, TARN__PLACE_ALTERNATE, "L", "R"};
  assert_int_equal(tarn__place_pattern(text, &place), TARN_STATUS_USAGE);
  assert_string_equal(tarn_error_message(), "5 reservoirs cannot alternate among 8 layers; at most 4 can");
  place = (tarn__placement){7, 6, TARN__PLACE_TOP, "L", "R"};
  assert_int_equal(tarn__place_pattern(text, &place), TARN_STATUS_USAGE);
  place = (tarn__placement){1, 6, TARN__PLACE_TOP, "L*9", "R"};
  assert_int_equal(tarn__place_pattern(text, &place), TARN_STATUS_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bare_uses_are_new_sets),      cmocka_unit_test(named_sets_are_shared),
      cmocka_unit_test(nested_groups_repeat),        cmocka_unit_test(errors_name_the_place),
      cmocka_unit_test(writing_is_canonical),        cmocka_unit_test(long_patterns_fit),
      cmocka_unit_test(placements_follow_the_paper), cmocka_unit_test(impossible_placements_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
