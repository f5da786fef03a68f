// TensorBoard's event file of a run: events.out.tfevents.TIME.HOST.PROCESS.0, next to the log.
//
// The file is a series of records framed as in TensorFlow's TFRecord (tensorflow/core/lib/io/record_writer.h):
//
//   8 bytes length of the data, little-endian | 4 bytes masked CRC-32C of these 8 | the data | 4 bytes masked CRC-32C
//   of it
//
// The data of each record is an Event (tensorflow/core/util/event.proto) in Protocol Buffers: the first has the version
// of the format, the second says that a session starts at a step, the third has the description as a text and as
// hyper-parameters (train/event_config.h), and each of the others has the scores of one record of the log as scalars,
// under the names of run/record.h.
//
// Each session of a run writes a separate file, like TensorFlow. From its first step on TensorBoard drops the points of
// earlier files; so a resumed run has each point once, even if a kill lost some updates.
#ifndef TARN_RUN_EVENT_FILE_H
#define TARN_RUN_EVENT_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "run/event_message.h"

// Zero-initialise with fd = -1, or open.
typedef struct tarn__event_file {
  int fd;
  char *path;
} tarn__event_file;

// Whether a run directory has no event file yet.
tarn_status tarn__event_file_none(bool *none, const char *folder) TARN_CHECKED;

// Creates a new file in a run directory, named to sort after all its event files, for a session that starts at `step`.
// `config` is the summary of the run's configuration (train/event_config.h); NULL writes none.
tarn_status tarn__event_file_open(tarn__event_file *file, const char *folder, int64_t step,
                                  const tarn__message *config) TARN_CHECKED;

// Adds the scores of a record of the log; a record without scores adds nothing.
tarn_status tarn__event_file_add(tarn__event_file *file, const json_t *record) TARN_CHECKED;

void tarn__event_file_close(tarn__event_file *file);

#endif
