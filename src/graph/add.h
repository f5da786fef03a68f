// The op add, for gradients with several contributions (graph/gradients.c).
#ifndef TARN_GRAPH_ADD_H
#define TARN_GRAPH_ADD_H

#include "graph/graph.h"

extern const tarn__op tarn__op_add;

#endif
