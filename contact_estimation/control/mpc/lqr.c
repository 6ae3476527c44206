/* The quadratic programme of one SQP step and its minimum with controls kept on given planes: a Riccati recursion.
 *
 *   min  sum_k 1/2 [x; u]^T [Q S^T; S R] [x; u] + q^T x + r^T u  + 1/2 x_H^T Q_H x_H + q_H^T x_H
 *   s.t. x_{k+1} = A x_k + B u_k + b,   x_0 = 0
 *
 * in increments x (CE_NX,), u (CE_NU,) around the last plan. Matrices are column-major, as CasADi and HPIPM have them.
 * With sizes known to the compiler this takes a quarter of the time of HPIPM's portable kernels. */
#include <math.h>
#include <string.h>

struct ce_model {
    double b[CE_NX], A[CE_NX * CE_NX], B[CE_NX * CE_NU];
    double Q[CE_NX * CE_NX], S[CE_NU * CE_NX], R[CE_NU * CE_NU], q[CE_NX], r[CE_NU];
    double g[CE_NG], C[CE_NG * CE_NX], D[CE_NG * CE_NU]; /* limits: g + C x + D u <= 0 */
};

/* Penalty of a plane over the Hessian of its control: the control is off the plane by 1e-6 of what it is held back. */
#define CE_STIFFNESS 1e6

/* Cost 1/2 stiffness (n^T du - distance)^2 + 1/2 curvature |aside + T du|^2 of the increment of a control's 3-vector u,
 * with T = 1 - n n^T and aside = T u: a penalty and the curvature of the limit. */
struct ce_plane {
    int active;
    double normal[3], distance, stiffness; /* the recursion sets the stiffness */
    double curvature, aside[3];
};

struct ce_feedback { /* u = K x + k */
    double K[CE_NU * CE_NX], k[CE_NU];
};

/* out (n, m) += left (n, l) right (l, m) */
static inline void add_product(double *out, const double *left, const double *right, int n, int l, int m)
{
    for (int j = 0; j < m; j++)
        for (int i = 0; i < l; i++)
            for (int a = 0; a < n; a++) out[j * n + a] += left[i * n + a] * right[j * l + i];
}

static inline void transpose(double *out, const double *in, int rows, int columns)
{
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++) out[i * columns + j] = in[j * rows + i];
}

/* Solve H X = F in place of F (CE_NU, m); H (CE_NU, CE_NU) becomes its Cholesky factor. Returns whether H is positive
 * definite. */
static int solve_controls(double *H, double *F, int m)
{
    for (int j = 0; j < CE_NU; j++) {
        for (int c = 0; c < j; c++)
            for (int i = j; i < CE_NU; i++) H[j * CE_NU + i] -= H[c * CE_NU + i] * H[c * CE_NU + j];
        if (!(H[j * CE_NU + j] > 0)) return 0;
        double scale = 1 / sqrt(H[j * CE_NU + j]);
        for (int i = j; i < CE_NU; i++) H[j * CE_NU + i] *= scale;
    }
    for (int c = 0; c < m; c++) {
        double *f = F + c * CE_NU;
        for (int j = 0; j < CE_NU; j++) {
            f[j] /= H[j * CE_NU + j];
            for (int i = j + 1; i < CE_NU; i++) f[i] -= H[j * CE_NU + i] * f[j];
        }
        for (int j = CE_NU - 1; j >= 0; j--) {
            for (int i = j + 1; i < CE_NU; i++) f[j] -= H[j * CE_NU + i] * f[i];
            f[j] /= H[j * CE_NU + j];
        }
    }
    return 1;
}

/* Add the cost of a plane of ball b to the Hessian (CE_NU, CE_NU) and the gradient (CE_NU,) by the control. */
static void add_penalty(struct ce_plane *plane, int b, double *hessian, double *gradient)
{
    double trace = 0;
    for (int c = 3 * b; c < 3 * b + 3; c++) trace += hessian[c * CE_NU + c];
    plane->stiffness = CE_STIFFNESS * trace;
    for (int c = 0; c < 3; c++) {
        const double n = plane->normal[c];
        double *row = hessian + 3 * b * CE_NU + 3 * b + c;
        gradient[3 * b + c] += plane->curvature * plane->aside[c] - plane->stiffness * plane->distance * n;
        row[c * CE_NU] += plane->curvature;
        for (int d = 0; d < 3; d++) row[d * CE_NU] += (plane->stiffness - plane->curvature) * n * plane->normal[d];
    }
}

/* One stage back: the cost to go P (CE_NX, CE_NX), p of the state after it becomes that of the state before it. */
static int riccati_step(const struct ce_model *m, struct ce_plane *planes, double *P, double *p,
                        struct ce_feedback *out)
{
    double At[CE_NX * CE_NX], Bt[CE_NU * CE_NX], Pt[CE_NX * CE_NX], next[CE_NX];
    double PA[CE_NX * CE_NX] = {0}, PB[CE_NX * CE_NU] = {0};
    double H[CE_NU * CE_NU], F[CE_NU * (CE_NX + 1)], Ft[CE_NX * CE_NU]; /* Hessians by u, by u and x with the gradient */
    transpose(At, m->A, CE_NX, CE_NX);
    transpose(Bt, m->B, CE_NX, CE_NU);
    add_product(p, P, m->b, CE_NX, CE_NX, 1);
    add_product(PA, P, m->A, CE_NX, CE_NX, CE_NX);
    add_product(PB, P, m->B, CE_NX, CE_NX, CE_NU);
    memcpy(H, m->R, sizeof H);
    memcpy(F, m->S, sizeof m->S);
    memcpy(F + CE_NU * CE_NX, m->r, sizeof m->r);
    add_product(H, Bt, PB, CE_NU, CE_NX, CE_NU);
    add_product(F, Bt, PA, CE_NU, CE_NX, CE_NX);
    add_product(F + CE_NU * CE_NX, Bt, p, CE_NU, CE_NX, 1);
    for (int b = 0; b < CE_BALLS; b++)
        if (planes[b].active) add_penalty(planes + b, b, H, F + CE_NU * CE_NX);
    transpose(Ft, F, CE_NU, CE_NX);
    if (!solve_controls(H, F, CE_NX + 1)) return 0;
    for (int i = 0; i < CE_NU * CE_NX; i++) out->K[i] = -F[i];
    for (int i = 0; i < CE_NU; i++) out->k[i] = -F[CE_NU * CE_NX + i];
    memcpy(next, m->q, sizeof next);
    add_product(next, At, p, CE_NX, CE_NX, 1);
    add_product(next, Ft, out->k, CE_NX, CE_NU, 1);
    memcpy(p, next, sizeof next);
    memcpy(P, m->Q, sizeof m->Q);
    add_product(P, At, PA, CE_NX, CE_NX, CE_NX);
    add_product(P, Ft, out->K, CE_NX, CE_NU, CE_NX);
    transpose(Pt, P, CE_NX, CE_NX);
    for (int i = 0; i < CE_NX * CE_NX; i++) P[i] = 0.5 * (P[i] + Pt[i]); /* rounding must not grow */
    return 1;
}

/* Minimum on the active planes: du (CE_H, CE_NU), dx (CE_H + 1, CE_NX). `last` has Q and q of the last state. Returns
 * whether the problem has one. */
static int minimise_on_planes(const struct ce_model *models, const struct ce_model *last,
                              struct ce_plane planes[][CE_BALLS], double du[][CE_NU], double dx[][CE_NX])
{
    struct ce_feedback feedback[CE_H];
    double P[CE_NX * CE_NX], p[CE_NX];
    memcpy(P, last->Q, sizeof P);
    memcpy(p, last->q, sizeof p);
    for (int k = CE_H - 1; k >= 0; k--)
        if (!riccati_step(models + k, planes[k], P, p, feedback + k)) return 0;
    memset(dx[0], 0, sizeof dx[0]);
    for (int k = 0; k < CE_H; k++) {
        memcpy(du[k], feedback[k].k, sizeof du[k]);
        add_product(du[k], feedback[k].K, dx[k], CE_NU, CE_NX, 1);
        memcpy(dx[k + 1], models[k].b, sizeof dx[k]);
        add_product(dx[k + 1], models[k].A, dx[k], CE_NX, CE_NX, 1);
        add_product(dx[k + 1], models[k].B, du[k], CE_NX, CE_NU, 1);
    }
    return 1;
}
