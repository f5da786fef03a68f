// Files that are replaced atomically, or stay as they were.
//
//   tarn_output_file *output;
//   status = tarn_output_file_open(&output, "translations.en");
//   fprintf(tarn_output_file_stream(output), ...);
//   status = tarn_output_file_commit(&output);
#ifndef TARN_OUTPUT_FILE_H
#define TARN_OUTPUT_FILE_H

#include <stdio.h>

#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_output_file tarn_output_file;

// Makes a temporary file in the folder of `path`: `path.tmp.PID`, `path.tmp.PID.1` where there is such a file, and so
// on; of a long name the first 100 bytes. A link is followed, also to where nothing is yet; the permissions of a file
// that is there are kept. What cannot be replaced is written directly: a device or pipe, and an open descriptor of this
// process (/dev/stdout, /dev/fd/3, /proc/thread-self/fd/3), from where it stands. Temporary files of this path whose
// processes were killed are removed first: those that belong to this user and that no process holds locked. Fails with
// IO (a folder, a file that is write-protected, a folder that cannot be written) or MEMORY.
TARN_API tarn_status tarn_output_file_open(tarn_output_file **output, const char *path) TARN_CHECKED;

// Where to write; its error indicator is looked at when the output is committed.
TARN_API FILE *tarn_output_file_stream(tarn_output_file *output);

// The temporary file, or NULL for what is written directly; valid until the output ends.
TARN_API const char *tarn_output_file_temporary(const tarn_output_file *output);

// Ends the output: writes out what is left and puts the file in its place (write, fsync, rename, fsync of the folder).
// Fails with IO, naming the path; then the file is as it was. Call it right after the last writing, so that errno tells
// why that failed.
TARN_API tarn_status tarn_output_file_commit(tarn_output_file **output) TARN_CHECKED;

// Ends the output and leaves the file as it was; accepts NULL in *output. Of what is written directly, only that is
// dropped which still waits in the stream's buffer.
TARN_API void tarn_output_file_abort(tarn_output_file **output);

#ifdef __cplusplus
}
#endif
#endif
