// The line of progress on a terminal, which is written again and again.
#ifndef TARN_TOOLS_PROGRESS_LINE_H
#define TARN_TOOLS_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum { PROGRESS_PART = 128 };  // bytes of a part of the line with its zero byte

// Writes the parts (UTF-8) from the first on, two blanks apart, over the line that stands there. Those at the end that
// the window, as wide as it is now, has no room for are left out; of the first, as much is written as fits.
void progress_line_show(const char (*parts)[PROGRESS_PART], size_t count);

// Takes the line away.
void progress_line_clear(void);

#endif
