// Output of tarn dynamics: tables for reading, or JSON, one object per line.
#ifndef TARN_TOOLS_DYNAMICS_OUTPUT_H
#define TARN_TOOLS_DYNAMICS_OUTPUT_H

#include "cli.h"
#include "tarn/lab/dynamics.h"

// Each returns the exit code. A model, its sentences, and their summary.
int dynamics_print_text(const cli_command *command, const tarn_dynamics_model *model,
                        const tarn_dynamics_summary *summary);
int dynamics_print_json(const cli_command *command, const tarn_dynamics_model *model,
                        const tarn_dynamics_summary *summary);

// The checkpoints of a training.
int dynamics_print_moments(const cli_command *command, const tarn_dynamics_moment *moments, size_t count);
int dynamics_print_moments_json(const cli_command *command, const tarn_dynamics_moment *moments, size_t count);

// Spectral radii and leak rates.
int dynamics_print_scan(const cli_command *command, const tarn_dynamics_scan *scan);
int dynamics_print_scan_json(const cli_command *command, const tarn_dynamics_scan *scan);

#endif
