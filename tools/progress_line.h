// The line of progress on a terminal, which is written again and again.
#ifndef TARN_TOOLS_PROGRESS_LINE_H
#define TARN_TOOLS_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { PROGRESS_PART = 128 };  // bytes of a part of the line with its zero byte

// Where the line stands from now on: standard error, unless it is said otherwise. True where that is a terminal that
// can show it; elsewhere nothing is written.
bool progress_line_stands_on(FILE *stream);

// Writes the parts (UTF-8) from the first on, two blanks apart, over the line that stands there. Those at the end that
// the window, as wide as it is now, has no room for are left out; of the first, as much is written as fits.
void progress_line_show(const char (*parts)[PROGRESS_PART], size_t count);

// Takes the line away, if there is one: before anything else is written on the terminal.
void progress_line_clear(void);
// The same, and keeps the line from coming back until what is to be said is written: messages come from the thread that
// watches other ranks too.
void progress_line_hold(void);
void progress_line_release(void);
// The same before results are printed, where they go to a terminal.
void progress_line_make_way(void);

#endif
