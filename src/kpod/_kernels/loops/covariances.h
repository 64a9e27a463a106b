/* One EM step of rows that lack the same columns, for a Gaussian mixture with whole covariance matrices.
 *
 * For each cluster, or once where all have the same matrix S: with S_oo = L L' of the observed columns, the missing ones
 * given the row have mean G d, d the deviations of the observed ones and G = S_mo S_oo^-1, and covariance
 * S_mm - V'V with V = L^-1 S_om. These belong to the pattern of gaps; a row of it takes a substitution and the products
 * that it adds to the sums. Matrices are by column, so that loops run along memory. */
#ifndef KPOD_COVARIANCES_H
#define KPOD_COVARIANCES_H

#include "vectors.h"

#define LOG_2_PI 1.8378770664093454836
#define NEGLIGIBLE 1e-15 /* posterior of a cluster that a row adds nothing to */

struct covariance_model {
    const double *means;       /* (k, p) */
    const double *covariances; /* (n_matrices, p, p) */
    const double *shares;      /* (k,) logs */
    ptrdiff_t k, p, n_matrices; /* 1 or k */
};

/* What belongs to a pattern and matrix: (n_matrices, p, p) each but the determinants, of which there is the log. */
struct pattern {
    const int32_t *observed, *missing;
    ptrdiff_t m, n_missing;
    double *cholesky, *slopes, *rest;
    double *log_determinant;
};

/* y -= a x */
KPOD_INLINE void take_off(double *restrict y, double a, const double *restrict x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] -= a * x[i];
}

KPOD_INLINE void add_to(double *restrict y, double a, const double *restrict x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* L^-1 y in place, L (m, m) by column with the inverses of its diagonal there. */
KPOD_INLINE void substitute(const double *restrict l, ptrdiff_t m, double *restrict y)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        y[i] *= l[i * m + i];
        take_off(y + i + 1, y[i], l + i * m + i + 1, m - i - 1);
    }
}

/* What the rows of a pattern share; returns 0 where a matrix is not positive definite. */
KPOD_DISPATCH int prepare_pattern(const struct covariance_model *model, const struct pattern *of, int whole)
{
    const ptrdiff_t p = model->p, m = of->m, n_missing = of->n_missing;
    for (ptrdiff_t c = 0; c < model->n_matrices; c++) {
        const double *s = model->covariances + c * p * p;
        double *l = of->cholesky + c * p * p, *slopes = of->slopes + c * p * p, *rest = of->rest + c * p * p;
        double log_determinant = 0;
        for (ptrdiff_t i = 0; i < m; i++) {
            const double *from = s + of->observed[i] * p;
            for (ptrdiff_t j = i; j < m; j++)
                l[i * m + j] = from[of->observed[j]];
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            double *column = l + i * m;
            for (ptrdiff_t j = 0; j < i; j++)
                take_off(column + i, l[j * m + i], l + j * m + i, m - i);
            if (!(column[i] > 0))
                return 0;
            log_determinant += log(column[i]);
            const double inverse = 1 / sqrt(column[i]);
            for (ptrdiff_t j = i + 1; j < m; j++)
                column[j] *= inverse;
            column[i] = inverse;
        }
        of->log_determinant[c] = log_determinant;
        if (!whole || !n_missing)
            continue;
        /* V, a missing column after the other, then G by observed column: L'G' = V. */
        for (ptrdiff_t a = 0; a < n_missing; a++) {
            double *v = slopes + a * m;
            const double *from = s + of->missing[a] * p;
            for (ptrdiff_t i = 0; i < m; i++)
                v[i] = from[of->observed[i]];
            substitute(l, m, v);
        }
        for (ptrdiff_t a = 0; a < n_missing; a++) {
            const double *from = s + of->missing[a] * p, *va = slopes + a * m;
            for (ptrdiff_t b = 0; b <= a; b++) {
                const double *vb = slopes + b * m;
                double sum = 0;
                for (ptrdiff_t i = 0; i < m; i++)
                    sum += va[i] * vb[i];
                rest[a * n_missing + b] = rest[b * n_missing + a] = from[of->missing[b]] - sum;
            }
        }
        for (ptrdiff_t a = 0; a < n_missing; a++) {
            double *v = slopes + a * m;
            for (ptrdiff_t i = m - 1; i >= 0; i--) {
                double sum = v[i];
                for (ptrdiff_t j = i + 1; j < m; j++)
                    sum -= l[i * m + j] * v[j];
                v[i] = sum * l[i * m + i];
            }
        }
    }
    return 1;
}

/* Log-likelihood and posterior (k,) of a row, and its deviations (k, m). */
KPOD_DISPATCH double covariance_row(const double *values, int label, const struct covariance_model *model,
                                    const struct pattern *of, double *deviations, double *posterior, double *room)
{
    const ptrdiff_t p = model->p, k = model->k, m = of->m;
    double most = -INFINITY, sum = 0;
    for (ptrdiff_t c = 0; c < k; c++) {
        const ptrdiff_t matrix = model->n_matrices == 1 ? 0 : c;
        double *d = deviations + c * m, square = 0;
        for (ptrdiff_t i = 0; i < m; i++)
            room[i] = d[i] = values[i] - model->means[c * p + of->observed[i]];
        substitute(of->cholesky + matrix * p * p, m, room);
        for (ptrdiff_t i = 0; i < m; i++)
            square += room[i] * room[i];
        posterior[c] = model->shares[c] - 0.5 * (square + of->log_determinant[matrix] + m * LOG_2_PI);
        most = posterior[c] > most ? posterior[c] : most;
    }
    for (ptrdiff_t c = 0; c < k; c++)
        sum += posterior[c] = exp(posterior[c] - most);
    for (ptrdiff_t c = 0; c < k; c++)
        posterior[c] = label >= 0 ? c == label : posterior[c] / sum;
    return most + log(sum);
}

/* Add a row of a weight to the sums: weights (k,), deviations (k, p) and their products (n_matrices, p, p) by column,
 * of which the missing columns come last here: `place` says where each goes. */
KPOD_DISPATCH void add_covariance_row(double weight, const struct covariance_model *model, const struct pattern *of,
                                      const double *deviations, const double *posterior, double *weights,
                                      double *first, double *second, double *shared, double *room)
{
    const ptrdiff_t p = model->p, k = model->k, m = of->m;
    for (ptrdiff_t c = 0; c < k; c++) {
        const double r = weight * posterior[c];
        if (posterior[c] < NEGLIGIBLE || !(r > 0))
            continue;
        const ptrdiff_t matrix = model->n_matrices == 1 ? 0 : c;
        const double *slopes = of->slopes + matrix * p * p, *d = deviations + c * m;
        weights[c] += r;
        shared[matrix] += r;
        for (ptrdiff_t i = 0; i < m; i++)
            room[of->observed[i]] = d[i];
        for (ptrdiff_t a = 0; a < of->n_missing; a++) {
            const double *g = slopes + a * m;
            double sum = 0;
            for (ptrdiff_t i = 0; i < m; i++)
                sum += g[i] * d[i];
            room[of->missing[a]] = sum;
        }
        add_to(first + c * p, r, room, p);
        for (ptrdiff_t i = 0; i < p; i++) /* the lower triangle */
            add_to(second + (matrix * p + i) * p + i, r * room[i], room + i, p - i);
    }
}

/* Add what is unknown of the rows of a pattern, whose weight in each matrix is `shared`, and forget that. */
KPOD_DISPATCH void add_rest(const struct covariance_model *model, const struct pattern *of, double *shared,
                            double *second)
{
    const ptrdiff_t p = model->p, n = of->n_missing;
    for (ptrdiff_t c = 0; c < model->n_matrices; c++) {
        const double *rest = of->rest + c * p * p;
        for (ptrdiff_t a = 0; shared[c] > 0 && a < n; a++)
            for (ptrdiff_t b = 0; b < n; b++)
                if (of->missing[b] >= of->missing[a])
                    second[(c * p + of->missing[a]) * p + of->missing[b]] += shared[c] * rest[a * n + b];
        shared[c] = 0;
    }
}

#endif
