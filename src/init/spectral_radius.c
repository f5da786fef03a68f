#include "init/spectral_radius.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/memory.h"
#include "base/random.h"

enum {
  SMALL = 160,     // up to here dgeev is at least as fast
  LARGEST = 8192,  // most units of a dense matrix for dgeev: half a gigabyte
  RESTARTS = 400,
  FACTOR_BITS = 20
};

// Settings of ARPACK. A matrix of tens of thousands of units has many eigenvalues within a thousandth of the largest:
// with 64 vectors it missed that by 0.08 % for 32,768 units, with 96 by 0.01 %, and with 1e-13 it took minutes.
typedef struct effort {
  int wanted;  // eigenvalues sought; more than a pair, so that a close one is not taken for the largest
  int basis;   // Krylov vectors
  double tolerance;
} effort;
static const effort USUAL = {6, 64, 1e-13}, LARGE = {8, 128, 1e-9};  // LARGE: for more than LARGEST units

// LAPACK and ARPACK (Lehoucq, Sorensen, Yang 1998), called as gfortran compiles them: the lengths of strings come last.
extern void dgeev_(const char *jobvl, const char *jobvr, const int *n, double *a, const int *lda, double *wr,
                   double *wi, double *vl, const int *ldvl, double *vr, const int *ldvr, double *work, const int *lwork,
                   int *info, size_t jobvl_length, size_t jobvr_length);
extern void dnaupd_(int *ido, const char *bmat, const int *n, const char *which, const int *nev, const double *tol,
                    double *resid, const int *ncv, double *v, const int *ldv, int *iparam, int *ipntr, double *workd,
                    double *workl, const int *lworkl, int *info, size_t bmat_length, size_t which_length);
extern void dneupd_(const int *rvec, const char *howmny, int *select, double *dr, double *di, double *z, const int *ldz,
                    const double *sigmar, const double *sigmai, double *workev, const char *bmat, const int *n,
                    const char *which, const int *nev, const double *tol, double *resid, const int *ncv, double *v,
                    const int *ldv, int *iparam, int *ipntr, double *workd, double *workl, const int *lworkl, int *info,
                    size_t howmny_length, size_t bmat_length, size_t which_length);

static pthread_mutex_t arpack_lock = PTHREAD_MUTEX_INITIALIZER;  // ARPACK keeps its state in static variables

static double largest(const double *real, const double *imaginary, int count) {
  double most = 0;
  for (int i = 0; i < count; i++) most = fmax(most, hypot(real[i], imaginary[i]));
  return most;
}

static tarn_status by_lapack(double *radius, const tarn__sparse *matrix) {
  TARN_REQUIRE(matrix->n <= LARGEST, NUMERIC,
               "the spectral radius of a matrix of %" PRId64 " units did not converge, and it is too large for LAPACK",
               matrix->n);
  int n = (int)matrix->n, one = 1, info = 0, length = 8 * n;
  size_t cells = (size_t)n * (size_t)n;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, cells + 2 * (size_t)n + (size_t)length, sizeof(double)));
  double *a = memory, *real = a + cells, *imaginary = real + n, *work = imaginary + n, none;
  tarn__sparse_to_dense(a, matrix);  // its transpose, to Fortran, which has the same eigenvalues
  dgeev_("N", "N", &n, a, &n, real, imaginary, &none, &one, &none, &one, work, &length, &info, 1, 1);
  *radius = largest(real, imaginary, n);
  tarn__free(memory);
  TARN_REQUIRE(info == 0, NUMERIC, "LAPACK found no eigenvalues of a matrix of %d units (dgeev: %d)", n, info);
  return TARN_STATUS_OK;
}

// Memory of ARPACK; the names are its own.
typedef struct arnoldi {
  double *resid, *v, *workd, *workl, *workev, *dr, *di;
  int *select;
  int iparam[11], ipntr[14];
  int n, nev, ncv, lworkl;
} arnoldi;

static tarn_status arnoldi_open(arnoldi *a, void **memory, const tarn__sparse *matrix, const effort *how) {
  const int basis = how->basis;
  *a = (arnoldi){.n = (int)matrix->n, .nev = how->wanted, .ncv = basis, .lworkl = 3 * basis * basis + 6 * basis};
  size_t n = (size_t)a->n, ncv = (size_t)basis, pairs = (size_t)how->wanted + 1;
  size_t count = n + n * ncv + 3 * n + (size_t)a->lworkl + 3 * ncv + 2 * pairs + ncv;
  TARN_TRY(tarn__alloc(memory, TARN__MEMORY_OTHER, count, sizeof(double)));
  a->resid = *memory;
  a->v = a->resid + n;
  a->workd = a->v + n * ncv;
  a->workl = a->workd + 3 * n;
  a->workev = a->workl + a->lworkl;
  a->dr = a->workev + 3 * ncv;
  a->di = a->dr + pairs;
  a->select = (int *)(a->di + pairs);
  a->iparam[0] = 1;  // exact shifts
  a->iparam[2] = RESTARTS;
  a->iparam[3] = 1;
  a->iparam[6] = 1;  // A x = lambda x
  tarn__random random;
  tarn__random_init(&random, 0, 0x41524e4f);
  for (size_t i = 0; i < n; i++) a->resid[i] = 2 * tarn__random_uniform(&random) - 1;
  return TARN_STATUS_OK;
}

// False if it did not converge.
static bool arnoldi_run(double *radius, arnoldi *a, const tarn__sparse *matrix, double tol) {
  const double sigma = 0;
  const int vectors = 0;
  int ido = 0, info = 1;  // 1: resid holds the first vector
  for (;;) {
    dnaupd_(&ido, "I", &a->n, "LM", &a->nev, &tol, a->resid, &a->ncv, a->v, &a->n, a->iparam, a->ipntr, a->workd,
            a->workl, &a->lworkl, &info, 1, 2);
    if (ido != -1 && ido != 1) break;
    tarn__sparse_product(a->workd + a->ipntr[1] - 1, matrix, a->workd + a->ipntr[0] - 1);
  }
  if (info != 0 || a->iparam[4] < a->nev || a->iparam[4] > a->nev + 1) return false;
  dneupd_(&vectors, "A", a->select, a->dr, a->di, a->v, &a->n, &sigma, &sigma, a->workev, "I", &a->n, "LM", &a->nev,
          &tol, a->resid, &a->ncv, a->v, &a->n, a->iparam, a->ipntr, a->workd, a->workl, &a->lworkl, &info, 1, 1, 2);
  *radius = largest(a->dr, a->di, a->iparam[4]);  // one more than requested if a pair would be cut
  return info == 0 && isfinite(*radius);
}

static tarn_status by_arpack(double *radius, const tarn__sparse *matrix) {
  const effort *how = matrix->n > LARGEST ? &LARGE : &USUAL;
  arnoldi a;
  void *memory;
  TARN_TRY(arnoldi_open(&a, &memory, matrix, how));
  pthread_mutex_lock(&arpack_lock);
  bool converged = arnoldi_run(radius, &a, matrix, how->tolerance);
  pthread_mutex_unlock(&arpack_lock);
  tarn__free(memory);
  return converged ? TARN_STATUS_OK : by_lapack(radius, matrix);
}

// The rows of the matrix by component: members [starts[c], starts[c + 1]).
typedef struct partition {
  int32_t *component, *members, *place;  // [n]; place: of a row among the members of its component
  int64_t *starts;                       // [count + 1]
  int32_t count;
} partition;

static void partition_close(partition *p) {
  tarn__free(p->component);
  tarn__free(p->starts);
  *p = (partition){0};
}

static tarn_status partition_open(partition *p, const tarn__sparse *matrix) {
  *p = (partition){0};
  size_t n = (size_t)matrix->n;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 3 * n, sizeof(int32_t)));
  p->component = memory;
  p->members = p->component + n;
  p->place = p->members + n;
  TARN_TRY(tarn__sparse_components(p->component, &p->count, matrix));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)p->count + 1, sizeof(int64_t)));
  p->starts = memory;
  for (size_t i = 0; i < n; i++) p->place[i] = (int32_t)p->starts[p->component[i] + 1]++;
  for (int32_t c = 0; c < p->count; c++) p->starts[c + 1] += p->starts[c];
  for (size_t i = 0; i < n; i++) p->members[p->starts[p->component[i]] + p->place[i]] = (int32_t)i;
  return TARN_STATUS_OK;
}

// The entries inside component c as a separate matrix.
static tarn_status extract(tarn__sparse *part, const tarn__sparse *matrix, const partition *p, int32_t c) {
  int64_t size = p->starts[c + 1] - p->starts[c], entries = 0;
  const int32_t *members = p->members + p->starts[c];
  for (int64_t i = 0; i < size; i++)
    for (int64_t e = matrix->starts[members[i]]; e < matrix->starts[members[i] + 1]; e++)
      entries += p->component[matrix->columns[e]] == c;
  TARN_TRY(tarn__sparse_alloc(part, size, entries));
  int64_t at = 0;
  for (int64_t i = 0; i < size; i++) {
    for (int64_t e = matrix->starts[members[i]]; e < matrix->starts[members[i] + 1]; e++) {
      if (p->component[matrix->columns[e]] != c) continue;
      part->columns[at] = p->place[matrix->columns[e]];
      part->values[at++] = matrix->values[e];
    }
    part->starts[i + 1] = at;
  }
  return TARN_STATUS_OK;
}

static tarn_status radius_of_part(double *radius, const tarn__sparse *part) {
  int64_t entries = part->starts[part->n];
  *radius = 0;
  if (entries == 0) return TARN_STATUS_OK;
  if (entries == part->n) {  // strongly connected, with one edge per unit: a ring
    double sum = 0;
    for (int64_t e = 0; e < entries; e++) sum += log(fabs(part->values[e]));
    *radius = exp(sum / (double)part->n);
    return TARN_STATUS_OK;
  }
  return part->n <= SMALL ? by_lapack(radius, part) : by_arpack(radius, part);
}

tarn_status tarn__spectral_radius(double *radius, const tarn__sparse *matrix) {
  for (int64_t e = 0; e < matrix->starts[matrix->n]; e++)
    TARN_REQUIRE(isfinite(matrix->values[e]), DATA, "a matrix with entries that are not finite has no spectral radius");
  partition p;
  tarn_status status = partition_open(&p, matrix);
  *radius = 0;
  for (int32_t c = 0; c < p.count && status == TARN_STATUS_OK; c++) {
    tarn__sparse part = {0};
    double one = 0;
    status = extract(&part, matrix, &p, c);
    if (status == TARN_STATUS_OK) status = radius_of_part(&one, &part);
    *radius = fmax(*radius, one);
    tarn__sparse_close(&part);
  }
  partition_close(&p);
  return status;
}

tarn_status tarn__spectral_radius_dense(double *radius, const double *matrix, int64_t n) {
  tarn__sparse sparse;
  TARN_TRY(tarn__sparse_from_dense(&sparse, matrix, n));
  tarn_status status = tarn__spectral_radius(radius, &sparse);
  tarn__sparse_close(&sparse);
  return status;
}

tarn_status tarn__spectral_factor(double *factor, const tarn__sparse *matrix, double radius) {
  TARN_REQUIRE(isfinite(radius) && radius >= 0, USAGE, "a spectral radius of %g cannot be had; it must be at least 0",
               radius);
  double now, norm = 0;
  *factor = 0;
  if (radius == 0) return TARN_STATUS_OK;
  int64_t entries = matrix->starts[matrix->n];
  TARN_REQUIRE(entries > 0, DATA, "a matrix of %" PRId64 " units without edges cannot be scaled to a spectral radius",
               matrix->n);
  TARN_TRY(tarn__spectral_radius(&now, matrix));
  for (int64_t e = 0; e < entries; e++) norm += matrix->values[e] * matrix->values[e];
  TARN_REQUIRE(now > 1e-7 * sqrt(norm), DATA,
               "a nilpotent matrix (%" PRId64 " units, %" PRId64
               " edges, spectral radius %.3g) cannot be scaled to the spectral radius %g",
               matrix->n, entries, now, radius);
  int exponent;
  const double mantissa = frexp(radius / now, &exponent);
  *factor = ldexp(round(ldexp(mantissa, FACTOR_BITS)), exponent - FACTOR_BITS);
  return TARN_STATUS_OK;
}
