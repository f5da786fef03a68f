// The functions of the headers that need no files.
#include "api.h"
#include "sandbox.h"
#include "tarn/status.h"

static void use_tarn_version(void) { assert_non_null(strchr(tarn_version(), '.')); }

static void use_tarn_version_text(void) { assert_non_null(strstr(tarn_version_text(), "instruction set")); }

static void use_tarn_status_text(void) {
  assert_string_equal(tarn_status_text(TARN_STATUS_OK), "success");
  assert_non_null(tarn_status_text((tarn_status)1000));
}

static void use_tarn_error_message(void) { assert_non_null(tarn_error_message()); }

int main(void) {
  static const char *const headers[] = {"status.h", NULL};
  static const api_use uses[] = {USE(tarn_version), USE(tarn_version_text), USE(tarn_status_text),
                                 USE(tarn_error_message)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, sandbox_open, sandbox_close);
}
