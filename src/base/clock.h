// Time.
#ifndef TARN_BASE_CLOCK_H
#define TARN_BASE_CLOCK_H

// Seconds on a clock that never goes back, even if the system's does.
double tarn__seconds(void);

// Processor seconds used by all threads of the process so far.
double tarn__cpu_seconds(void);

// The correction: the time to show for `now`, where *shown is the last time shown and *ahead the offset.
double tarn__clock_steady(double now, double *shown, double *ahead);

#endif
