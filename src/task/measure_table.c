#include <string.h>

#include "task/task.h"

static const tarn_measure table[TARN_METRIC_COUNT] = {
    [TARN_METRIC_LOSS] = {.metric = TARN_METRIC_LOSS,
                          .word = "loss",
                          .name = "loss",
                          .axis = "loss per token (nats)",
                          .less = true,
                          .digits = 3,
                          .told_digits = 4},
    [TARN_METRIC_NLL] = {.metric = TARN_METRIC_NLL,
                         .word = "nll",
                         .name = "nll",
                         .axis = "nll per token (nats)",
                         .less = true,
                         .digits = 3,
                         .told_digits = 4},
    [TARN_METRIC_PPL] = {.metric = TARN_METRIC_PPL,
                         .word = "ppl",
                         .name = "perplexity",
                         .axis = "perplexity per token",
                         .less = true,
                         .derived = true,
                         .digits = 2,
                         .told_digits = 2},
    [TARN_METRIC_BLEU] = {.metric = TARN_METRIC_BLEU,
                          .word = "bleu",
                          .name = "BLEU",
                          .axis = "BLEU (0 to 100)",
                          .from_zero = true,
                          .digits = 2,
                          .told_digits = 2},
    [TARN_METRIC_BPC] = {.metric = TARN_METRIC_BPC,
                         .word = "bpc",
                         .name = "bits per character",
                         .axis = "bits per character",
                         .less = true,
                         .digits = 3,
                         .told_digits = 4},
    [TARN_METRIC_BPB] = {.metric = TARN_METRIC_BPB,
                         .word = "bpb",
                         .name = "bits per byte",
                         .axis = "bits per byte",
                         .less = true,
                         .digits = 3,
                         .told_digits = 4},
    [TARN_METRIC_ACCURACY] = {.metric = TARN_METRIC_ACCURACY,
                              .word = "accuracy",
                              .name = "accuracy",
                              .axis = "accuracy (0 to 1)",
                              .from_zero = true,
                              .digits = 4,
                              .told_digits = 4},
    [TARN_METRIC_F1] =
        {.metric = TARN_METRIC_F1, .word = "f1", .name = "F1", .axis = "F1 (0 to 1)", .digits = 4, .told_digits = 4},
    [TARN_METRIC_MCC] = {.metric = TARN_METRIC_MCC,
                         .word = "mcc",
                         .name = "Matthews correlation",
                         .axis = "Matthews correlation (-1 to 1)",
                         .from_zero = true,
                         .digits = 4,
                         .told_digits = 4},
    [TARN_METRIC_MSE] = {.metric = TARN_METRIC_MSE,
                         .word = "mse",
                         .name = "mean squared error",
                         .axis = "mean squared error",
                         .less = true,
                         .digits = 4,
                         .told_digits = 4},
    [TARN_METRIC_PEARSON] = {.metric = TARN_METRIC_PEARSON,
                             .word = "pearson",
                             .name = "Pearson's correlation",
                             .axis = "Pearson's correlation (-1 to 1)",
                             .from_zero = true,
                             .digits = 4,
                             .told_digits = 4},
    [TARN_METRIC_SPEARMAN] = {.metric = TARN_METRIC_SPEARMAN,
                              .word = "spearman",
                              .name = "Spearman's correlation",
                              .axis = "Spearman's correlation (-1 to 1)",
                              .from_zero = true,
                              .digits = 4,
                              .told_digits = 4},
};

const tarn_measure *tarn_measure_of(tarn_metric metric) { return &table[metric]; }

const tarn_measure *tarn_measure_find(const char *name) {
  // No word of a measure has one of the signs, and in a name with a slash _ belongs to the words around it.
  const char *slash = strrchr(name, '/'), *sign = slash ? slash : strrchr(name, '_');
  const char *word = sign ? sign + 1 : name;
  for (int m = 0; m < TARN_METRIC_COUNT; m++)
    if (strcmp(table[m].word, word) == 0) return &table[m];
  return NULL;
}

static char one_sign(char letter) { return letter == '/' ? '_' : letter; }

bool tarn_measure_same_name(const char *name, const char *written) {
  while (*name && one_sign(*name) == one_sign(*written)) {
    name++;
    written++;
  }
  return *name == *written;
}

bool tarn__metric_better(double value, double than, tarn_metric metric) {
  return table[metric].less ? value < than : value > than;
}
