// Time.
#ifndef TARN_BASE_CLOCK_H
#define TARN_BASE_CLOCK_H

// Seconds on a clock that never goes back.
double tarn__seconds(void);

#endif
