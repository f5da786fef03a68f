#include "config/config_dynamics.h"

#include <string.h>

#include "config/config_options.h"
#include "config/config_part.h"

tarn_status tarn__config_resolve_dynamics(tarn_config *config, const tarn__yaml_node *root) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_DYNAMICS);
  const tarn__yaml_node *map = tarn__yaml_get(root, section->path);
  const char *input = config->dynamics.input;
  if (input && strcmp(input, "-") == 0)
    return tarn__yaml_fail_key(
        root, "dynamics.input",
        "standard input can be read once, and a training that goes on reads the sentences again; "
        "give a file");
  if (tarn__yaml_is_empty(tarn__yaml_get(map, "every"))) config->dynamics.every = config->valid.every;
  for (int i = 0; !input && i < section->count; i++) {
    const tarn__option *option = &section->options[i];
    const tarn__yaml_node *given = tarn__yaml_get(map, option->name);
    const char *field = (const char *)&config->dynamics + option->offset;
    if (tarn__yaml_is_empty(given)) continue;
    if (option->value && tarn__option_is_default(option, field, &config->model)) continue;
    return tarn__yaml_fail(given,
                           "dynamics.%s: no exponents are computed without dynamics.input, the sentences on which the "
                           "model is iterated",
                           option->name);
  }
  return TARN_STATUS_OK;
}
