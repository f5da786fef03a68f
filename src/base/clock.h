// Time.
#ifndef TARN_BASE_CLOCK_H
#define TARN_BASE_CLOCK_H

// Seconds on a clock that never goes back.
double tarn__seconds(void);

// Processor seconds that all threads of the process have taken so far.
double tarn__cpu_seconds(void);

#endif
