#include "config/config_fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "config/config_read.h"

tarn_status tarn__config_fail(const tarn_config *config, tarn_status status, const char *key, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const tarn__yaml_node *root = config->memory ? config->memory->root : NULL;
  const tarn__yaml_node *node = root ? tarn__yaml_nearest(root, key) : NULL;
  if (!node || node->line == 0) return tarn__fail(status, "%s: %s: %s", node ? node->origin : config->name, key, text);
  return tarn__fail(status, "%s:%d: %s: %s", node->origin, node->line, key, text);
}
