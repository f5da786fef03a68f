// tarn draw: writes a set of drawn images.
#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/lab/drawings.h"

static const cli_command COMMAND = {
    "draw", "", "Draw a set of images with labels, digits or shapes, for image classifiers.",
    "Writes train-images.idx, train-labels.idx and the same for valid and test: grey "
    "images as IDX files, the\n"
    "format of MNIST. Equal options give equal files. tarn prepare --images reads them."};

int cmd_draw(int argc, char **argv) {
  static const char *const whats[] = {[TARN_DRAWINGS_DIGITS] = "digits", [TARN_DRAWINGS_SHAPES] = "shapes"};
  tarn_drawings_options options;
  tarn_drawings_default(&options);
  int64_t seed = (int64_t)options.seed, size = options.size;
  const char *what = whats[options.what];
  int place = 0;
  bool json = false;
  cli_list none = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &options.output, "DIR", "folder for the files; needed", 0, 0},
      {"what", CLI_TEXT, &what, "WHAT", "digits (0 to 9), or shapes (circle, square, triangle, cross, star, heart)", 0,
       0},
      {"seed", CLI_INT, &seed, "N", "seed of the generator", 0, 0},
      {"images", CLI_INT, &options.images, "N", "images for training", 1, 1000000},
      {"held-out", CLI_INT, &options.held_out, "N", "images each for validation and test", 1, 100000},
      {"size", CLI_INT, &size, "N", "height and width in pixels", 16, 128},
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &none, 0, 0);
  cli_list_free(&none);
  if (code < 0 && !options.output) code = cli_usage(&COMMAND, "--output is missing");
  if (code < 0) code = cli_word(&COMMAND, &place, "--what", what, whats, 2);
  if (code >= 0) return code;
  options.what = (tarn_drawings_what)place;
  options.seed = (uint64_t)seed;
  options.size = (int)size;
  const tarn_status status = tarn_drawings_write(&options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  return json ? json_output_made(&COMMAND, options.output, NULL, NULL) : CLI_OK;
}
