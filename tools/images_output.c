#include "images_output.h"

#include <inttypes.h>
#include <stdio.h>

#include "json_output.h"

static int print_json(const cli_command *command, const tarn_images_result *r) {
  json_t *object = json_pack("{s:I, s:i, s:i, s:i, s:i, s:I, s:I}", "images", (json_int_t)r->images, "height",
                             r->height, "width", r->width, "channels", r->channels, "classes", (int)r->classes, "most",
                             (json_int_t)r->most, "skipped", (json_int_t)r->skipped);
  return json_output_print(command, stdout, object, JSON_COMPACT);
}

int prepare_images(const cli_command *command, const tarn_images_options *options, bool json) {
  tarn_images_result r;
  const tarn_status status = tarn_images_prepare(&r, options);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  if (json) return print_json(command, &r);
  printf("images %10" PRId64 " of %d x %d pixels, %s\n", r.images, r.height, r.width,
         r.channels == 1 ? "grey" : "in colour");
  printf("labels %10d classes, the most frequent one has %.2f %% of the images\n", (int)r.classes,
         100.0 * (double)r.most / (double)r.images);
  if (r.skipped > 0) printf("skipped %9" PRId64 " files and folders that are not named *.png\n", r.skipped);
  return CLI_OK;
}
