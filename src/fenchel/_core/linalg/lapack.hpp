// BLAS and LAPACK functions called through pointers, with their C signatures as written by Cython.
#pragma once

namespace fenchel {

struct Posv {  // solves a positive definite system
    static constexpr const char *signature = "void (char *, int *, int *, double *, int *, double *, int *, int *)";
    void (*call)(char *uplo, int *n, int *nrhs, double *a, int *lda, double *b, int *ldb, int *info);
};

struct Syrk {  // the product of a matrix with its transpose
    static constexpr const char *signature = "void (char *, char *, int *, int *, double *, double *, int *, double *, double *, int *)";
    void (*call)(char *uplo, char *trans, int *n, int *k, double *alpha, double *a, int *lda, double *beta, double *c, int *ldc);
};

}  // namespace fenchel
