// The one pool of threads (OpenMP, which the product library uses as well).
#ifndef TARN_BASE_THREADS_H
#define TARN_BASE_THREADS_H

// Sets the number of threads for everything that follows; 0 means one a core that this process may use.
void tarn__threads_set(int threads);
int tarn__threads(void);

// Sets the flush of denormal numbers to zero on every thread of the pool (x86): denormals cost hundreds of cycles and
// carry nothing.
void tarn__threads_flush_denormals(void);

#endif
