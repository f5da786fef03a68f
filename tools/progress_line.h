// A progress line on a terminal that is rewritten repeatedly.
#ifndef TARN_TOOLS_PROGRESS_LINE_H
#define TARN_TOOLS_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { PROGRESS_PART = 128 };  // size of a part of the line with its zero byte, in bytes

// Sets the stream of the line; the default is standard error. Returns true if it is a suitable terminal; otherwise
// nothing is written.
bool progress_line_stands_on(FILE *stream);

// Replaces the current line by the parts (UTF-8), separated by two spaces. Parts at the end that do not fit the current
// window are dropped; the first one is truncated.
void progress_line_show(const char (*parts)[PROGRESS_PART], size_t count);

// Removes the line, if there is one, before other output on the terminal.
void progress_line_clear(void);
// The same, and blocks the line until the message is written: messages also come from the thread that monitors other
// ranks.
void progress_line_hold(void);
void progress_line_release(void);
// The same before results are printed, if they go to a terminal.
void progress_line_make_way(void);

#endif
