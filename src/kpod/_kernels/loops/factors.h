/* One EM step of a row of a Gaussian mixture whose covariances are low rank plus diagonal.
 *
 * Given its cluster l, the deviations d = x - mean of a row's observed entries are loadings' z + noise, with z ~ N(0, I)
 * of q factors. With A = I + sum over observed columns of loading loading' / variance and b = sum of loading d / variance,
 * z given the row has mean A^-1 b and covariance A^-1, and the density of the row follows from both (Woodbury). Clusters
 * lie side by side in vectors of four; of symmetric matrices there is the lower triangle, row by row. */
#ifndef KPOD_FACTORS_H
#define KPOD_FACTORS_H

#include "vectors.h"

#define MOST_FACTORS 24
#define FEW_FACTORS 4 /* for which there is a loop of their own */
#define TRIANGLE(q) ((q) * ((q) + 1) / 2)
/* Numbers of a cluster and column: mean, precision, log(2 pi variance), loading / variance, its products with itself. */
#define FACTOR_TERMS(q) (3 + (q) + TRIANGLE(q))
/* Sums of a cluster and column: 1, d, d^2, z, d z, z z'; and of a cluster: 1, z z'. */
#define FACTOR_SUMS(q) (3 + 2 * (q) + TRIANGLE(q))
#define CLUSTER_SUMS(q) (1 + TRIANGLE(q))

typedef double lanes4 __attribute__((vector_size(32), aligned(32), may_alias));

struct factor_model {
    const double *terms;  /* (p, FACTOR_TERMS, lanes) */
    const double *shares; /* (lanes,) logs; -infinity in lanes of no cluster */
    ptrdiff_t k, lanes;
    int q;
};

/* Where what is found goes; each may be NULL but `room`, of (8 + 4 q + 3 TRIANGLE(q)) lanes. */
struct factor_result {
    double *sums;         /* (p, FACTOR_SUMS, lanes) added to */
    double *cluster_sums; /* (CLUSTER_SUMS, lanes) added to */
    double *posterior;    /* (k,) */
    double *scores;       /* (q, k) */
    double *covariances;  /* (TRIANGLE, k) */
    double *room;
};

KPOD_INLINE lanes4 root4(lanes4 a)
{
    for (int t = 0; t < 4; t++)
        a[t] = sqrt(a[t]);
    return a;
}

/* Cholesky factor of matrices side by side, in place, with 1 / its diagonal there; returns the product of that. */
KPOD_INLINE lanes4 factorise(lanes4 *restrict a, ptrdiff_t v, const ptrdiff_t V, const int q)
{
    lanes4 product = {1, 1, 1, 1};
    for (int i = 0; i < q; i++)
        for (int j = 0; j <= i; j++) {
            lanes4 sum = a[(TRIANGLE(i) + j) * V + v];
            for (int c = 0; c < j; c++)
                sum -= a[(TRIANGLE(i) + c) * V + v] * a[(TRIANGLE(j) + c) * V + v];
            if (i == j) {
                sum = 1 / root4(sum);
                product *= sum;
            } else
                sum *= a[(TRIANGLE(j) + j) * V + v];
            a[(TRIANGLE(i) + j) * V + v] = sum;
        }
    return product;
}

/* A^-1 from the factor of A as `factorise` leaves it. */
KPOD_INLINE void inverse_of(const lanes4 *restrict a, lanes4 *restrict out, lanes4 *restrict l, ptrdiff_t v,
                            const ptrdiff_t V, const int q)
{
    for (int i = 0; i < q; i++) /* l = L^-1 */
        for (int j = 0; j <= i; j++) {
            lanes4 sum = {0};
            if (i == j)
                sum = a[(TRIANGLE(i) + i) * V + v];
            else {
                for (int c = j; c < i; c++)
                    sum -= a[(TRIANGLE(i) + c) * V + v] * l[(TRIANGLE(c) + j) * V + v];
                sum *= a[(TRIANGLE(i) + i) * V + v];
            }
            l[(TRIANGLE(i) + j) * V + v] = sum;
        }
    for (int i = 0; i < q; i++) /* L^-T L^-1 */
        for (int j = 0; j <= i; j++) {
            lanes4 sum = {0};
            for (int c = i; c < q; c++)
                sum += l[(TRIANGLE(c) + i) * V + v] * l[(TRIANGLE(c) + j) * V + v];
            out[(TRIANGLE(i) + j) * V + v] = sum;
        }
}

/* Posterior of a row's clusters, and its log-likelihood; with `label` >= 0 that cluster has it for certain. */
KPOD_INLINE double posterior_of(lanes4 *restrict r, const lanes4 *restrict logs, const lanes4 *restrict scale,
                                const ptrdiff_t V, int label)
{
    double most = -INFINITY, sum = 0;
    const double *log_of = (const double *)logs, *scales = (const double *)scale;
    double *out = (double *)r;
    for (ptrdiff_t l = 0; l < 4 * V; l++)
        most = log_of[l] > most ? log_of[l] : most;
    for (ptrdiff_t l = 0; l < 4 * V; l++) {
        out[l] = log_of[l] == -INFINITY ? 0 : exp(log_of[l] - most) * scales[l];
        sum += out[l];
    }
    const double inverse = 1 / sum;
    for (ptrdiff_t l = 0; l < 4 * V; l++)
        out[l] = label >= 0 ? l == label : out[l] * inverse;
    return most + log(sum);
}

KPOD_INLINE double factor_row_of(const int32_t *restrict columns, const double *restrict values, ptrdiff_t m,
                                 double weight, int label, const struct factor_model *model,
                                 const struct factor_result *to, const ptrdiff_t V, const int q)
{
    const int T = TRIANGLE(q), terms = FACTOR_TERMS(q), n_sums = FACTOR_SUMS(q);
    lanes4 *base = (lanes4 *)to->room, *r = base + V, *scale = r + V;
    lanes4 *b = scale + V, *z = b + q * V, *a = z + q * V, *cov = a + T * V, *extra = cov + T * V;
    for (ptrdiff_t v = 0; v < V; v++) {
        /* Sums of what is small stay in registers. */
        lanes4 kept[1 + FEW_FACTORS + TRIANGLE(FEW_FACTORS)] = {{0}};
        lanes4 *to_b = q <= FEW_FACTORS ? kept + 1 : b + v, *to_a = q <= FEW_FACTORS ? kept + 1 + q : a + v;
        const ptrdiff_t step = q <= FEW_FACTORS ? 1 : V;
        for (int i = 0; q > FEW_FACTORS && i < q; i++)
            to_b[i * step] = (lanes4){0};
        for (int i = 0; q > FEW_FACTORS && i < T; i++)
            to_a[i * step] = (lanes4){0};
        for (ptrdiff_t e = 0; e < m; e++) {
            const lanes4 *of = (const lanes4 *)model->terms + columns[e] * terms * V + v;
            const lanes4 d = values[e] - of[0];
            kept[0] += d * d * of[V] + of[2 * V];
            for (int i = 0; i < q; i++)
                to_b[i * step] += d * of[(3 + i) * V];
            for (int i = 0; i < T; i++)
                to_a[i * step] += of[(3 + q + i) * V];
        }
        base[v] = kept[0];
        for (int i = 0; i < q && q <= FEW_FACTORS; i++)
            b[i * V + v] = to_b[i];
        for (int i = 0; i < T && q <= FEW_FACTORS; i++)
            a[i * V + v] = to_a[i];
    }
    for (ptrdiff_t v = 0; v < V; v++) {
        for (int i = 0; i < q; i++)
            a[(TRIANGLE(i) + i) * V + v] += 1;
        scale[v] = factorise(a, v, V, q);
        for (int i = 0; i < q; i++) { /* L^-1 b, whose square is what the factors explain */
            lanes4 sum = b[i * V + v];
            for (int c = 0; c < i; c++)
                sum -= a[(TRIANGLE(i) + c) * V + v] * z[c * V + v];
            z[i * V + v] = sum *= a[(TRIANGLE(i) + i) * V + v];
            base[v] -= sum * sum;
        }
        base[v] = ((const lanes4 *)model->shares)[v] - 0.5 * base[v];
    }
    const double evidence = posterior_of(r, base, scale, V, label);
    if (to->posterior)
        memcpy(to->posterior, r, model->k * sizeof(double));
    if (!to->sums && !to->scores)
        return evidence;
    for (ptrdiff_t v = 0; v < V; v++) {
        for (int i = q - 1; i >= 0; i--) {
            lanes4 sum = z[i * V + v];
            for (int c = i + 1; c < q; c++)
                sum -= a[(TRIANGLE(c) + i) * V + v] * z[c * V + v];
            z[i * V + v] = sum * a[(TRIANGLE(i) + i) * V + v];
        }
        inverse_of(a, cov, extra, v, V, q);
    }
    if (to->scores) {
        for (int i = 0; i < q; i++)
            memcpy(to->scores + i * model->k, z + i * V, model->k * sizeof(double));
        for (int i = 0; i < T; i++)
            memcpy(to->covariances + i * model->k, cov + i * V, model->k * sizeof(double));
    }
    if (!to->sums || !(weight > 0))
        return evidence;
    lanes4 *whole = (lanes4 *)to->cluster_sums;
    for (ptrdiff_t v = 0; v < V; v++) {
        r[v] *= weight;
        whole[v] += r[v];
        for (int i = 0; i < q; i++)
            b[i * V + v] = r[v] * z[i * V + v];
        for (int i = 0; i < q; i++)
            for (int j = 0; j <= i; j++) {
                const int at = TRIANGLE(i) + j;
                a[at * V + v] = b[i * V + v] * z[j * V + v] + r[v] * cov[at * V + v];
                whole[(1 + at) * V + v] += a[at * V + v];
            }
    }
    for (ptrdiff_t e = 0; e < m; e++) {
        const lanes4 *of = (const lanes4 *)model->terms + columns[e] * terms * V;
        lanes4 *sums = (lanes4 *)to->sums + columns[e] * n_sums * V;
        for (ptrdiff_t v = 0; v < V; v++) {
            const lanes4 d = values[e] - of[v], rd = r[v] * d;
            sums[v] += r[v];
            sums[V + v] += rd;
            sums[2 * V + v] += rd * d;
            for (int i = 0; i < q; i++) {
                sums[(3 + i) * V + v] += b[i * V + v];
                sums[(3 + q + i) * V + v] += b[i * V + v] * d;
            }
            for (int i = 0; i < T; i++)
                sums[(3 + 2 * q + i) * V + v] += a[i * V + v];
        }
    }
    return evidence;
}

#define FACTOR_CASE(V_, q_)                                                                                            \
    if (V == (V_) && q == (q_))                                                                                        \
        return factor_row_of(columns, values, m, weight, label, model, to, V_, q_);

/* The E step of a row, what of it goes to the M step, and its log-likelihood. */
KPOD_DISPATCH double factor_row(const int32_t *columns, const double *values, ptrdiff_t m, double weight, int label,
                                const struct factor_model *model, const struct factor_result *to)
{
    const ptrdiff_t V = model->lanes / 4;
    const int q = model->q;
    /* What is small is known to the compiler, and stays in registers. */
    FACTOR_CASE(1, 0)
    FACTOR_CASE(1, 1)
    FACTOR_CASE(1, 2)
    FACTOR_CASE(1, 3)
    FACTOR_CASE(1, 4)
    FACTOR_CASE(2, 0)
    FACTOR_CASE(2, 1)
    FACTOR_CASE(2, 2)
    FACTOR_CASE(2, 3)
    FACTOR_CASE(2, 4)
    return factor_row_of(columns, values, m, weight, label, model, to, V, q);
}

#endif
