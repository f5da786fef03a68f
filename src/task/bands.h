// Vocabularies divided into bands of ids: adaptive input (Baevski and Auli 2019) and adaptive softmax (Grave et al.
// 2017), as in fairseq. Band b has vectors of floor(d_model / factor^b) numbers and a projection between them and
// d_model.
#ifndef TARN_TASK_BANDS_H
#define TARN_TASK_BANDS_H

#include "task/head.h"
#include "task/task.h"

// Cut-offs and factor of an input or of the output; without cut-offs there are no bands.
typedef struct tarn__cutoffs {
  const char *key;  // "model.adaptive_input_cutoff"
  const int64_t *values;
  int64_t count;
  double factor;
} tarn__cutoffs;
tarn__cutoffs tarn__input_cutoffs(const tarn_config_model *model);
tarn__cutoffs tarn__output_cutoffs(const tarn_config_model *model);
// Width of band b.
int64_t tarn__band_width(const tarn__cutoffs *cutoffs, int64_t d_model, int64_t b);

// Declares the embedding of a side in bands, whose names derive from that of a single table, "source.weight":
// "source.band1.weight" and "source.band1.projection.weight". `shared`: the output uses the same tables. Fails if a
// cut-off is not below the vocabulary size.
tarn_status tarn__bands_declare_input(tarn__bands *bands, const tarn__task_site *site, const char *name, int64_t vocab,
                                      bool trained, bool shared) TARN_CHECKED;
// Declares tables of the output alone, "output.band1.weight"; the classes of the other bands are the last rows of the
// first table.
tarn_status tarn__bands_declare_tables(tarn__bands *bands, const tarn__task_site *site) TARN_CHECKED;
// If the output shares its table, makes the tables of an input those of the output.
void tarn__bands_share(tarn__task_weights *weights);
// Declares the other parameters of an output in bands: projections and optional biases.
tarn_status tarn__bands_declare_output(tarn__task_weights *weights, const tarn__task_site *site,
                                       bool biased) TARN_CHECKED;

// Maximum number of parameters of bands, and parameter number i of them; NULL: absent.
enum { TARN__BAND_PARAMS = 3 * TARN__BANDS };
tarn__param *tarn__bands_param(const tarn__bands *bands, int i);
// Whether rows of a parameter are looked up by the ids of a side, and whether it is an output table of words.
bool tarn__weights_look_up(const tarn__task_weights *weights, const tarn__param *param);
bool tarn__weights_predict(const tarn__task_weights *weights, const tarn__param *param);

// The vectors of ids [rows, d_model], times `scale`. ids NULL: the graph is only planned, with ids distributed over the
// bands by Zipf's law.
tarn__tensor *tarn__bands_embed(tarn__graph *graph, const tarn__bands *bands, const int32_t *ids, int64_t rows,
                                double scale);

// As tarn__head_loss() and the others.
tarn__tensor *tarn__bands_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets, double grad_scale);
tarn__tensor *tarn__bands_token_loss(tarn__graph *graph, const tarn__head *head, tarn__tensor *targets);
tarn__tensor *tarn__bands_log_probabilities(tarn__graph *graph, const tarn__head *head);
tarn__top tarn__bands_top(tarn__graph *graph, const tarn__head *head, int64_t best, int32_t always);

#endif
