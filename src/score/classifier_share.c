#include "score/classifier_share.h"

#include "ops/pixels.h"

// The header of a batch's arrays in a parcel.
typedef struct heading {
  int64_t sentences, rows, longest, predictions;
  int64_t segments, selected, targets, values;  // whether present
  int64_t pixels;                               // integers of them
} heading;

static int64_t pixels_of(const tarn_classifier *c, int64_t rows) {
  return tarn__pixel_words(rows * c->checkpoint->model->weights.patches->cols);
}

void tarn__classifier_put(tarn_classifier *c, int rank, const tarn__batch *batch) {
  tarn__buffer *to = &c->share.parcels[rank];
  const tarn__packed *text = &batch->target;
  const int64_t n = batch->predictions;
  const heading head = {.sentences = text->sentences,
                        .rows = text->rows,
                        .longest = text->longest,
                        .predictions = n,
                        .segments = text->segments != NULL,
                        .selected = batch->selected != NULL,
                        .targets = batch->targets != NULL,
                        .values = batch->values != NULL,
                        .pixels = text->pixels ? pixels_of(c, text->rows) : 0};
  tarn__share_put(to, &head, 1, sizeof head);
  tarn__share_put(to, text->ids, text->rows, sizeof *text->ids);
  tarn__share_put(to, text->positions, text->rows, sizeof *text->positions);
  tarn__share_put(to, text->offsets, text->sentences + 1, sizeof *text->offsets);
  if (head.pixels) tarn__share_put(to, text->pixels, head.pixels, sizeof *text->pixels);
  if (head.segments) tarn__share_put(to, text->segments, text->rows, sizeof *text->segments);
  if (head.selected) tarn__share_put(to, batch->selected, n, sizeof *batch->selected);
  if (head.targets) tarn__share_put(to, batch->targets, n, sizeof *batch->targets);
  if (head.values) tarn__share_put(to, batch->values, n, sizeof *batch->values);
}

// Its arrays stay in the parcel; a parcel without a batch gives an empty one.
static tarn_status take_batch(tarn__batch *batch, tarn__share_reader from) {
  const heading *head;
  tarn__packed *text = &batch->target;
  *batch = (tarn__batch){0};
  if (from.left == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__share_take(&head, &from, 1, sizeof *head));
  batch->source.sentences = head->sentences;
  *text = (tarn__packed){.sentences = head->sentences, .rows = head->rows, .longest = head->longest};
  batch->predictions = head->predictions;
  TARN_TRY(tarn__share_take(&text->ids, &from, text->rows, sizeof *text->ids));
  TARN_TRY(tarn__share_take(&text->positions, &from, text->rows, sizeof *text->positions));
  TARN_TRY(tarn__share_take(&text->offsets, &from, text->sentences + 1, sizeof *text->offsets));
  if (head->pixels) TARN_TRY(tarn__share_take(&text->pixels, &from, head->pixels, sizeof *text->pixels));
  if (head->segments) TARN_TRY(tarn__share_take(&text->segments, &from, text->rows, sizeof *text->segments));
  if (head->selected) TARN_TRY(tarn__share_take(&batch->selected, &from, head->predictions, sizeof *batch->selected));
  if (head->targets) TARN_TRY(tarn__share_take(&batch->targets, &from, head->predictions, sizeof *batch->targets));
  if (head->values) TARN_TRY(tarn__share_take(&batch->values, &from, head->predictions, sizeof *batch->values));
  return TARN_STATUS_OK;
}

// Numbers per prediction.
static int64_t width(const tarn_classifier *c) { return c->names.count ? c->names.count : 1; }

tarn_status tarn__classifier_round(tarn_classifier *c, bool *more) {
  tarn__share_reader parcel;
  tarn__batch batch;
  TARN_TRY(tarn__share_deal(&c->share, &parcel, more));
  if (!*more) return TARN_STATUS_OK;
  TARN_TRY(take_batch(&batch, parcel));
  if (batch.predictions > 0) {
    const float *answers;
    double loss;
    TARN_TRY(tarn__classifier_run(c, &batch, &answers, &loss));
    tarn__share_put(tarn__share_answer(&c->share), &loss, 1, sizeof loss);
    tarn__share_put(tarn__share_answer(&c->share), answers, batch.predictions * width(c), sizeof *answers);
  }
  return tarn__share_collect(&c->share);
}

tarn_status tarn__classifier_take(tarn_classifier *c, int rank, tarn__batch *batch, const float **answers,
                                  double *loss) {
  const tarn__buffer *parcel = &c->share.parcels[rank];
  const double *found;
  *answers = NULL;
  *loss = 0;
  TARN_TRY(take_batch(batch, (tarn__share_reader){parcel->data, parcel->used}));
  if (batch->predictions == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__share_take(&found, &c->share.readers[rank], 1, sizeof *found));
  *loss = *found;
  return tarn__share_take(answers, &c->share.readers[rank], batch->predictions * width(c), sizeof **answers);
}

tarn_status tarn__classifier_help(tarn_classifier *c) {
  for (bool more = true; more;) TARN_TRY(tarn__classifier_round(c, &more));
  return TARN_STATUS_OK;
}
