// The last layer of a classifier that reads the first row of each sentence (head.pool: cls): keys and values are needed
// of all rows, and everything behind them of these rows alone.
#ifndef TARN_MODEL_FIRST_ROWS_H
#define TARN_MODEL_FIRST_ROWS_H

#include "model/model.h"

// Sets cuts->read_rows and read_offsets if the model's last layer can be computed so, and nothing else of it is wanted.
void tarn__first_rows_read(const tarn__model *model, tarn__graph *graph, const tarn__batch *batch,
                           tarn__model_shortcuts *cuts);

#endif
