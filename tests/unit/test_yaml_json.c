// YAML texts as JSON values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/json_io.h"
#include "base/memory.h"
#include "base/yaml_json.h"
#include "tarn/status.h"

static void meanings(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "null"},
      {"a: 1\nb: -2.5\nc: true\nd: false\ne: ~\nf:\ng: text\n",
       "{\"a\": 1, \"b\": -2.5, \"c\": true, \"d\": false, \"e\": null, \"f\": null, \"g\": \"text\"}"},
      {"\"1\": \"1\"\n'true': 'true'\n", "{\"1\": \"1\", \"true\": \"true\"}"},
      {"1: 1\ntrue: 2\n~: 3\n<<: 4\n=: 5\n", "{\"1\": 1, \"true\": 2, \"~\": 3, \"<<\": 4, \"=\": 5}"},
      {"\"\\\"\": 2\n\"\\\\\": 3\n---: 4\n\xE2\x96\x81"
       "a: 5\n",
       "{\"\\\"\": 2, \"\\\\\": 3, \"---\": 4, \"\xE2\x96\x81"
       "a\": 5}"},
      {"[1, [x, {y: z}], []]", "[1, [\"x\", {\"y\": \"z\"}], []]"},
      {"a: 1e3\nb: .inf\nc: 1.0\nd: inf\n", "{\"a\": 1000, \"b\": \".inf\", \"c\": 1.0, \"d\": \"inf\"}"},
      {"{\"a\": {\"b\": [null]}}", "{\"a\": {\"b\": [null]}}"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_t *value;
    if (tarn__yaml_json(&value, "x", cases[i][0], strlen(cases[i][0])) != TARN_STATUS_OK)
      fail_msg("%s", tarn_error_message());
    char *text = tarn__json_dump(value, JSON_ENCODE_ANY);
    assert_string_equal(text, cases[i][1]);
    free(text);
    json_decref(value);
  }
}

static void refusals(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"a: 1\nb: 2\na: 3\n", "x:3: key \"a\" is given twice"},
      {"a: 1\n[b]: 2\n", "x:2: a key must be one word"},
      {"a: &b 1\n", "x:1: anchors and aliases"},
      {"a: *b\n", "x:1: anchors and aliases"},
      {"a: !!str 1\n", "x:1: tags (!)"},
      {"a: [1\n", "x:2: not valid YAML"},
      {"a: \"\\0\"\n", "x:1: a zero byte in a value"},
      {"a: 1\n--- \nb: 2\n", "x:2: more than one YAML document"},
      {"\xFF", "x: not valid YAML"},
      {"[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", "x:1: nested too deeply"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    json_t *value;
    assert_int_equal(tarn__yaml_json(&value, "x", cases[i][0], strlen(cases[i][0])), TARN_STATUS_DATA);
    assert_null(value);
    if (!strstr(tarn_error_message(), cases[i][1]))
      fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), cases[i][1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(meanings),
      cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
