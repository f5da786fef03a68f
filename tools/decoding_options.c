#include "decoding_options.h"

#include <string.h>

bool drawing_options_given(const drawing_options *d) {
  return !isnan(d->temperature) || !isnan(d->top_p) || !isnan(d->min_p) || !isnan(d->typical_p) ||
         d->top_k != CLI_NO_INT;
}

int drawing_options_set(const cli_command *command, const drawing_options *d, double *temperature, int64_t *top_k,
                        double *top_p, uint64_t *seed, tarn_decoding *decoding) {
  if (!isnan(d->temperature)) *temperature = d->temperature;
  if (!isnan(d->top_p)) *top_p = d->top_p;
  if (!isnan(d->min_p)) decoding->min_p = d->min_p;
  if (!isnan(d->typical_p)) decoding->typical_p = d->typical_p;
  if (d->top_k != CLI_NO_INT) *top_k = d->top_k;
  if (d->seed != CLI_NO_INT) *seed = (uint64_t)d->seed;
  if (!d->mbr) return -1;
  for (int i = TARN_MBR_BLEU; i < TARN_MBR_COUNT; i++)
    if (strcmp(d->mbr, tarn_mbr_word((tarn_mbr)i)) == 0) decoding->mbr = (tarn_mbr)i;
  return decoding->mbr != TARN_MBR_NONE ? -1 : cli_usage(command, "--mbr %s: it is bleu or chrf", d->mbr);
}
