// Parameters that an optimiser updates together, as one table. A device may keep a copy of it in its own memory, so
// that one launch updates all of them.
#ifndef TARN_OPTIM_PARAM_TABLE_H
#define TARN_OPTIM_PARAM_TABLE_H

#include "device/device.h"
#include "graph/param.h"

typedef struct tarn__param_table {
  tarn__param *const *params;  // [count], the caller's
  size_t count;
  void *there;  // the device's copy; NULL: none
} tarn__param_table;

// Refreshes the device's copy after a change of the parameters (which are trained, where their gradients are). Call it
// before the table is used.
static inline tarn_status tarn__param_table_refresh(const tarn__device *device, tarn__param_table *table) {
  return device->type->table ? device->type->table(device, table) : TARN_STATUS_OK;
}

static inline void tarn__param_table_close(const tarn__device *device, tarn__param_table *table) {
  if (table->there) tarn__device_free(device, table->there);
  table->there = NULL;
}

#endif
