// The one op that differentiation itself needs: sum = a + b, element by element, in place of a.
#include "graph/add.h"

const tarn__op tarn__op_add = {.id = TARN__OP_ADD, .name = "add", .in_place = true, .inplace_out = 0, .inplace_in = 0};
