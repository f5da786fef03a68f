// The table of measures, one line each.
#include "train/set_measure.h"

static const tarn__set_measure *const table[TARN__SET_MEASURES] = {&tarn__set_bleu};

const tarn__set_measure *tarn__set_measure_at(int index) { return index < TARN__SET_MEASURES ? table[index] : NULL; }
