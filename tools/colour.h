// Colours and bold text on a terminal.
#ifndef TARN_TOOLS_COLOUR_H
#define TARN_TOOLS_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

typedef enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW } colour;

// Whether a stream is a terminal whose lines can be rewritten: TERM is not "dumb".
bool colour_is_terminal(FILE *stream);

// The escape sequence that starts the colour on this stream; COLOUR_NONE ends it. "" if the stream is not such a
// terminal, or if NO_COLOR is set and not empty (no-color.org).
const char *colour_on(FILE *stream, colour which);

#endif
