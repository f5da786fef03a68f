// Time.
#ifndef TARN_BASE_CLOCK_H
#define TARN_BASE_CLOCK_H

// Seconds on a clock that never goes back, not even where the system's does.
double tarn__seconds(void);

// Processor seconds that all threads of the process have taken so far.
double tarn__cpu_seconds(void);

// What makes it so: the time to show for `now` of a clock, of which *shown was shown last and *ahead is added to it.
double tarn__clock_steady(double now, double *shown, double *ahead);

#endif
