/* One Gauss-Newton SQP iteration on HPIPM. The text of the generated functions ce_stage and ce_final precedes this file, as do
 * the macros CE_H, CE_NX, CE_NU, CE_NG, CE_NP (sizes) and CE_BALLS (number of 3-vectors in the control).
 *
 * The force limit is a ball around zero. A QP knows planes only: the tangent at the present control, and then, while
 * the QP's solution is outside the ball, the tangent where it left it (CE_CUTS times at most). The QP's matrices stay
 * what they are. Any tangent of a ball is valid for ever: the cuts of one tick are the next one's start.
 *
 * Layouts: X (H+1, nx), U (H, nu), P (H+1, np), multipliers (H, ng), row after row. Matrices of the generated code
 * are column-major, as HPIPM expects. The QP is in increments around (X, U); X[0] is the measured state, so that
 * stage 0 has no state. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "hpipm_d_ocp_qp.h"
#include "hpipm_d_ocp_qp_dim.h"
#include "hpipm_d_ocp_qp_ipm.h"
#include "hpipm_d_ocp_qp_sol.h"

#define CE_CUTS 3
#define CE_ROWS (CE_NG + CE_CUTS * CE_BALLS) /* limits of a stage: linearised norms, then cuts */
#define CE_RESIDUAL 1e-2                     /* of constraints [rad, rad/s, N]: a QP left with more has no solution */
#define CE_OUTSIDE 1.005                     /* share of the limit from which a cut is worth a QP */

struct ce_rti {
    struct d_ocp_qp_dim dim;
    struct d_ocp_qp qp;
    struct d_ocp_qp_sol sol;
    struct d_ocp_qp_ipm_arg arg;
    struct d_ocp_qp_ipm_ws ws;
    void *memory[5];
    casadi_int *iw;
    double *w;
    double next[CE_NX], A[CE_NX * CE_NX], B[CE_NX * CE_NU], Q[CE_NX * CE_NX], S[CE_NU * CE_NX], R[CE_NU * CE_NU];
    double q[CE_NX], r[CE_NU], g[CE_NG], C[CE_NG * CE_NX], D[CE_NG * CE_NU], cost;
    double rows_C[CE_ROWS * CE_NX], rows_D[CE_H][CE_ROWS * CE_NU], rows_g[CE_H][CE_ROWS];
    double normals[CE_H][CE_CUTS * CE_NU]; /* of the cuts kept; zero: none yet */
    int slot;                              /* the oldest cut */
};

void ce_rti_free(struct ce_rti *s)
{
    if (!s) return;
    for (int i = 0; i < 5; i++) free(s->memory[i]);
    free(s->iw);
    free(s->w);
    free(s);
}

struct ce_rti *ce_rti_new(int iter_max, double tol, double mu0)
{
    struct ce_rti *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    casadi_int arg_n, res_n, iw_a, w_a, iw_b, w_b;
    ce_stage_work(&arg_n, &res_n, &iw_a, &w_a);
    ce_final_work(&arg_n, &res_n, &iw_b, &w_b);
    s->iw = malloc(sizeof(casadi_int) * (1 + (iw_a > iw_b ? iw_a : iw_b)));
    s->w = malloc(sizeof(double) * (1 + (w_a > w_b ? w_a : w_b)));

    s->memory[0] = malloc(d_ocp_qp_dim_memsize(CE_H));
    if (!s->iw || !s->w || !s->memory[0]) { ce_rti_free(s); return NULL; }
    d_ocp_qp_dim_create(CE_H, &s->dim, s->memory[0]);
    for (int k = 0; k <= CE_H; k++) {
        d_ocp_qp_dim_set_nx(k, k ? CE_NX : 0, &s->dim);
        d_ocp_qp_dim_set_nu(k, k < CE_H ? CE_NU : 0, &s->dim);
        d_ocp_qp_dim_set_nbx(k, k ? CE_NX : 0, &s->dim);
        d_ocp_qp_dim_set_nbu(k, k < CE_H ? CE_NU : 0, &s->dim);
        d_ocp_qp_dim_set_ng(k, k < CE_H ? CE_ROWS : 0, &s->dim);
    }
    s->memory[1] = malloc(d_ocp_qp_memsize(&s->dim));
    s->memory[2] = malloc(d_ocp_qp_sol_memsize(&s->dim));
    s->memory[3] = malloc(d_ocp_qp_ipm_arg_memsize(&s->dim));
    if (!s->memory[1] || !s->memory[2] || !s->memory[3]) { ce_rti_free(s); return NULL; }
    d_ocp_qp_create(&s->dim, &s->qp, s->memory[1]);
    d_ocp_qp_sol_create(&s->dim, &s->sol, s->memory[2]);
    d_ocp_qp_ipm_arg_create(&s->dim, &s->arg, s->memory[3]);
    d_ocp_qp_ipm_arg_set_default(SPEED_ABS, &s->arg);
    int yes = 1; /* the fast formulation skips residuals unless asked; they tell a QP without a solution */
    d_ocp_qp_ipm_arg_set_comp_dual_sol_eq(&yes, &s->arg);
    d_ocp_qp_ipm_arg_set_comp_res_exit(&yes, &s->arg);
    d_ocp_qp_ipm_arg_set_iter_max(&iter_max, &s->arg);
    d_ocp_qp_ipm_arg_set_mu0(&mu0, &s->arg);
    d_ocp_qp_ipm_arg_set_tol_stat(&tol, &s->arg);
    d_ocp_qp_ipm_arg_set_tol_eq(&tol, &s->arg);
    d_ocp_qp_ipm_arg_set_tol_ineq(&tol, &s->arg);
    d_ocp_qp_ipm_arg_set_tol_comp(&tol, &s->arg);
    s->memory[4] = malloc(d_ocp_qp_ipm_ws_memsize(&s->dim, &s->arg));
    if (!s->memory[4]) { ce_rti_free(s); return NULL; }
    d_ocp_qp_ipm_ws_create(&s->dim, &s->arg, &s->ws, s->memory[4]);

    d_ocp_qp_set_all_zero(&s->qp);
    int index[CE_NX > CE_NU ? CE_NX : CE_NU];
    double zero[CE_ROWS];
    for (int i = 0; i < (CE_NX > CE_NU ? CE_NX : CE_NU); i++) index[i] = i;
    memset(zero, 0, sizeof zero);
    for (int k = 0; k <= CE_H; k++) {
        if (k) d_ocp_qp_set_idxbx(k, index, &s->qp);
        if (k < CE_H) {
            d_ocp_qp_set_idxbu(k, index, &s->qp);
            d_ocp_qp_set_lg_mask(k, zero, &s->qp); /* a norm has no lower limit */
        }
    }
    return s;
}

/* Row `row` of stage k: the tangent of ball b with the normal n, in increments around u. */
static void place_tangent(struct ce_rti *s, int k, int row, int b, const double *n, const double *u, double limit)
{
    double reached = 0;
    for (int c = 0; c < 3; c++) {
        s->rows_D[k][(3 * b + c) * CE_ROWS + row] = n[c];
        reached += n[c] * u[3 * b + c];
    }
    s->rows_g[k][row] = limit - reached;
}

/* Limits of stage k: the linearised norms, then the cuts kept from before. */
static void place_rows(struct ce_rti *s, int k, const double *u, const double *limits)
{
    for (int j = 0; j < CE_NX; j++)
        for (int i = 0; i < CE_NG; i++) s->rows_C[j * CE_ROWS + i] = s->C[j * CE_NG + i];
    for (int j = 0; j < CE_NU; j++)
        for (int i = 0; i < CE_NG; i++) s->rows_D[k][j * CE_ROWS + i] = s->D[j * CE_NG + i];
    for (int i = 0; i < CE_NG; i++) s->rows_g[k][i] = -s->g[i];
    for (int i = 0; i < CE_CUTS * CE_BALLS; i++)
        place_tangent(s, k, CE_NG + i, i % CE_BALLS, s->normals[k] + 3 * i, u, limits[i % CE_BALLS]);
}

static double norm3(const double *v) { return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

/* Put a tangent where the QP's solution is outside a ball; returns how many were put. */
static int add_cuts(struct ce_rti *s, const double *U, const double *limits)
{
    int count = 0;
    for (int k = 0; k < CE_H; k++) {
        double u[CE_NU];
        int changed = 0;
        d_ocp_qp_sol_get_u(k, &s->sol, u);
        for (int i = 0; i < CE_NU; i++) u[i] += U[k * CE_NU + i];
        for (int b = 0; b < CE_BALLS; b++) {
            double norm = norm3(u + 3 * b), *normal = s->normals[k] + 3 * (s->slot * CE_BALLS + b);
            if (!(norm > CE_OUTSIDE * limits[b])) continue;
            for (int c = 0; c < 3; c++) normal[c] = u[3 * b + c] / norm;
            place_tangent(s, k, CE_NG + s->slot * CE_BALLS + b, b, normal, U + k * CE_NU, limits[b]);
            changed = 1;
            count++;
        }
        if (changed) {
            d_ocp_qp_set_D(k, s->rows_D[k], &s->qp);
            d_ocp_qp_set_ug(k, s->rows_g[k], &s->qp);
        }
    }
    if (count) s->slot = (s->slot + 1) % CE_CUTS;
    return count;
}

/* Linearise around (X, U) and fill the QP; returns the largest defect. */
static double fill(struct ce_rti *s, const double *X, const double *U, const double *P, const double *multipliers,
                   const double *lower, const double *upper, const double *limits, double *cost)
{
    double worst = 0, bl[CE_NX], bu[CE_NX];
    *cost = 0;
    for (int k = 0; k <= CE_H; k++) {
        const double *x = X + k * CE_NX, *u = U + k * CE_NU;
        if (k < CE_H) {
            const double *arg[] = {x, u, P + k * CE_NP, multipliers + k * CE_NG};
            double *res[] = {s->next, s->A, s->B, s->Q, s->S, s->R, s->q, s->r, s->g, s->C, s->D, &s->cost};
            ce_stage(arg, res, s->iw, s->w, 0);
            for (int i = 0; i < CE_NX; i++) {
                s->next[i] -= x[CE_NX + i];
                /* !(a <= b) also catches NaN */
                if (!(fabs(s->next[i]) <= worst)) worst = fabs(s->next[i]);
            }
            for (int i = 0; i < CE_NU; i++) {
                bl[i] = -limits[i / 3] - u[i];
                bu[i] = limits[i / 3] - u[i];
            }
            place_rows(s, k, u, limits);
            if (k) {
                d_ocp_qp_set_A(k, s->A, &s->qp);
                d_ocp_qp_set_Q(k, s->Q, &s->qp);
                d_ocp_qp_set_S(k, s->S, &s->qp);
                d_ocp_qp_set_q(k, s->q, &s->qp);
                d_ocp_qp_set_C(k, s->rows_C, &s->qp);
            }
            d_ocp_qp_set_B(k, s->B, &s->qp);
            d_ocp_qp_set_b(k, s->next, &s->qp);
            d_ocp_qp_set_R(k, s->R, &s->qp);
            d_ocp_qp_set_r(k, s->r, &s->qp);
            d_ocp_qp_set_D(k, s->rows_D[k], &s->qp);
            d_ocp_qp_set_ug(k, s->rows_g[k], &s->qp);
            d_ocp_qp_set_lbu(k, bl, &s->qp);
            d_ocp_qp_set_ubu(k, bu, &s->qp);
        } else {
            const double *arg[] = {x, P + k * CE_NP};
            double *res[] = {s->Q, s->q, &s->cost};
            ce_final(arg, res, s->iw, s->w, 0);
            d_ocp_qp_set_Q(k, s->Q, &s->qp);
            d_ocp_qp_set_q(k, s->q, &s->qp);
        }
        *cost += s->cost;
        if (k) {
            /* A plan that is outside a bound may stay, not go further: the measured state can lie outside. */
            for (int i = 0; i < CE_NX; i++) {
                bl[i] = fmin(lower[i] - x[i], 0);
                bu[i] = fmax(upper[i] - x[i], 0);
            }
            d_ocp_qp_set_lbx(k, bl, &s->qp);
            d_ocp_qp_set_ubx(k, bu, &s->qp);
        }
    }
    return worst;
}

/* Improve (X, U) in place by `iterations` full steps. limits: largest norm per 3-vector of the control.
 * info: QP iterations, largest defect and cost before the last step, largest control increment of it.
 * Returns HPIPM's status (0 solved, 1 iteration limit, 2 step too small, 3 not a number), 4 for
 * constraints that contradict each other, or -1 for input that is not
 * finite. */
int ce_rti_solve(struct ce_rti *s, double *X, double *U, const double *P, double *multipliers, const double *lower,
                 const double *upper, const double *limits, int iterations, double *info)
{
    int status = 0, qp_iterations = 0;
    info[0] = 0;
    for (int j = 0; j < iterations; j++) {
        double dx[CE_NX], du[CE_NU], lam[CE_ROWS], largest = 0;
        double defect = fill(s, X, U, P, multipliers, lower, upper, limits, &info[2]);
        if (!isfinite(defect) || !isfinite(info[2])) return -1;
        info[1] = defect;
        for (int cut = 0; cut <= CE_CUTS; cut++) {
            d_ocp_qp_ipm_solve(&s->qp, &s->sol, &s->arg, &s->ws);
            d_ocp_qp_ipm_get_status(&s->ws, &status);
            d_ocp_qp_ipm_get_iter(&s->ws, &qp_iterations);
            info[0] += qp_iterations;
            if (status > 1) return status;
            double equal, unequal;
            d_ocp_qp_ipm_get_max_res_eq(&s->ws, &equal);
            d_ocp_qp_ipm_get_max_res_ineq(&s->ws, &unequal);
            if (!(equal < CE_RESIDUAL && unequal < CE_RESIDUAL)) return 4;
            if (cut == CE_CUTS || !add_cuts(s, U, limits)) break;
        }
        for (int k = 0; k <= CE_H; k++) {
            if (k) {
                d_ocp_qp_sol_get_x(k, &s->sol, dx);
                for (int i = 0; i < CE_NX; i++) X[k * CE_NX + i] += dx[i];
            }
            if (k == CE_H) break;
            double *u = U + k * CE_NU;
            d_ocp_qp_sol_get_u(k, &s->sol, du);
            d_ocp_qp_sol_get_lam_ug(k, &s->sol, lam);
            for (int i = 0; i < CE_NG; i++) multipliers[k * CE_NG + i] = lam[i];
            for (int i = CE_NG; i < CE_ROWS; i++) multipliers[k * CE_NG + (i - CE_NG) % CE_BALLS] += lam[i];
            for (int i = 0; i < CE_NU; i++) {
                u[i] += du[i];
                if (!(fabs(du[i]) <= largest)) largest = fabs(du[i]);
            }
            for (int i = 0; i < CE_BALLS; i++) { /* the exact limit, eq. 31 */
                double norm = norm3(u + 3 * i);
                if (norm > limits[i]) for (int c = 0; c < 3; c++) u[3 * i + c] *= limits[i] / norm;
            }
        }
        info[3] = largest;
    }
    return status;
}
