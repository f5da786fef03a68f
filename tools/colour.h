// Colours and weights of text on a terminal.
#ifndef TARN_TOOLS_COLOUR_H
#define TARN_TOOLS_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

typedef enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW } colour;

// Whether a stream is a terminal on which a line can be rewritten: TERM is not "dumb".
bool colour_is_terminal(FILE *stream);

// What begins the colour on this stream, and COLOUR_NONE what ends it: "" where the stream is no such terminal, or
// NO_COLOR is in the environment and not empty (no-color.org).
const char *colour_on(FILE *stream, colour which);

#endif
