// Memory of a tarn_series.
#ifndef TARN_SERIES_TABLE_H
#define TARN_SERIES_TABLE_H

#include "base/status.h"
#include "tarn/lab/series.h"

enum { TARN__SERIES_COLUMNS = 4096 };  // most columns of a file

// A series of zeros; NULL names become "1", "2", ...
tarn_status tarn__series_new(tarn_series **series, int64_t rows, int64_t columns,
                             const char *const *names) TARN_CHECKED;

// Fails with DATA unless the series has these columns, in this order. `whose` describes them: "the network was trained
// on".
tarn_status tarn__series_check_columns(const tarn_series *series, const char *const *names, int64_t columns,
                                       const char *whose) TARN_CHECKED;

#endif
