// reused.json: the run of which a run is a copy.
#ifndef TARN_REPORT_REUSED_H
#define TARN_REPORT_REUSED_H

#include "base/status.h"

// Writes FOLDER/reused.json, which says that the run there is a copy of the run `from`.
tarn_status tarn__reused_write(const char *folder, const char *from) TARN_CHECKED;

#endif
