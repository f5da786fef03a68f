// Sends one message to the receiver that the program set with tarn_log_set().
#ifndef TARN_BASE_LOG_H
#define TARN_BASE_LOG_H

#include "tarn/process.h"

void tarn__log(tarn_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
