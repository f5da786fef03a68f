// tarn prepare --images: sets of images.
#ifndef TARN_TOOLS_IMAGES_OUTPUT_H
#define TARN_TOOLS_IMAGES_OUTPUT_H

#include "cli.h"
#include "tarn/images.h"

// Prepares them and prints the result. Returns the exit code.
int prepare_images(const cli_command *command, const tarn_images_options *options, bool json);

#endif
