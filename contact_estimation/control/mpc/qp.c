/* The quadratic programme of one SQP step with its limits, on HPIPM.
 *
 * The force limit is a ball around zero. A QP knows planes only: the tangent at the present control, and then, while
 * the QP's solution is outside the ball, the tangent where it left it (CE_CUTS times at most). The QP's matrices stay
 * what they are. Any tangent of a ball is valid for ever: the cuts of one tick are the next one's start. */
#include <stdlib.h>
#include "hpipm_d_ocp_qp.h"
#include "hpipm_d_ocp_qp_dim.h"
#include "hpipm_d_ocp_qp_ipm.h"
#include "hpipm_d_ocp_qp_sol.h"

#define CE_CUTS 3
#define CE_ROWS (CE_NG + CE_CUTS * CE_BALLS) /* limits of a stage: linearised norms, then cuts */
#define CE_RESIDUAL 1e-2                     /* of constraints [rad, rad/s, N]: a QP left with more has no solution */

struct ce_qp {
    struct d_ocp_qp_dim dim;
    struct d_ocp_qp qp;
    struct d_ocp_qp_sol sol;
    struct d_ocp_qp_ipm_arg arg;
    struct d_ocp_qp_ipm_ws ws;
    void *memory[5];
    double C[CE_ROWS * CE_NX], D[CE_H][CE_ROWS * CE_NU], g[CE_H][CE_ROWS];
    double normals[CE_H][CE_CUTS * CE_NU]; /* of the cuts kept; zero: none yet */
    int slot;                              /* the oldest cut */
};

static void free_qp(struct ce_qp *s)
{
    for (int i = 0; i < 5; i++) free(s->memory[i]);
}

/* Returns whether there was memory for it. */
static int make_qp(struct ce_qp *s, int iter_max, double tol, double mu0)
{
    if (!(s->memory[0] = malloc(d_ocp_qp_dim_memsize(CE_H)))) return 0;
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
    if (!s->memory[1] || !s->memory[2] || !s->memory[3]) return 0;
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
    if (!(s->memory[4] = malloc(d_ocp_qp_ipm_ws_memsize(&s->dim, &s->arg)))) return 0;
    d_ocp_qp_ipm_ws_create(&s->dim, &s->arg, &s->ws, s->memory[4]);

    d_ocp_qp_set_all_zero(&s->qp);
    int index[CE_NX > CE_NU ? CE_NX : CE_NU];
    double zero[CE_ROWS] = {0};
    for (int i = 0; i < (CE_NX > CE_NU ? CE_NX : CE_NU); i++) index[i] = i;
    for (int k = 0; k <= CE_H; k++) {
        if (k) d_ocp_qp_set_idxbx(k, index, &s->qp);
        if (k < CE_H) {
            d_ocp_qp_set_idxbu(k, index, &s->qp);
            d_ocp_qp_set_lg_mask(k, zero, &s->qp); /* a norm has no lower limit */
        }
    }
    return 1;
}

/* Row `row` of stage k: the tangent of ball b with the normal n, in increments around u. */
static void place_tangent(struct ce_qp *s, int k, int row, int b, const double *n, const double *u, double limit)
{
    double reached = 0;
    for (int c = 0; c < 3; c++) {
        s->D[k][(3 * b + c) * CE_ROWS + row] = n[c];
        reached += n[c] * u[3 * b + c];
    }
    s->g[k][row] = limit - reached;
}

/* Limits of stage k: the linearised norms, then the cuts kept from before. */
static void place_rows(struct ce_qp *s, int k, const struct ce_model *m, const double *u, const double *limits)
{
    for (int j = 0; j < CE_NX; j++)
        for (int i = 0; i < CE_NG; i++) s->C[j * CE_ROWS + i] = m->C[j * CE_NG + i];
    for (int j = 0; j < CE_NU; j++)
        for (int i = 0; i < CE_NG; i++) s->D[k][j * CE_ROWS + i] = m->D[j * CE_NG + i];
    for (int i = 0; i < CE_NG; i++) s->g[k][i] = -m->g[i];
    for (int i = 0; i < CE_CUTS * CE_BALLS; i++)
        place_tangent(s, k, CE_NG + i, i % CE_BALLS, s->normals[k] + 3 * i, u, limits[i % CE_BALLS]);
    d_ocp_qp_set_D(k, s->D[k], &s->qp);
    d_ocp_qp_set_ug(k, s->g[k], &s->qp);
    if (k) d_ocp_qp_set_C(k, s->C, &s->qp);
}

/* HPIPM copies what it only reads, but does not say const. */
static double *given(const double *values) { return (double *)values; }

/* Hand the models (CE_H,), the last state's, and the bounds of the state in increments to HPIPM. */
static void place_qp(struct ce_qp *s, const struct ce_model *models, const struct ce_model *last,
                     double lower[][CE_NX], double upper[][CE_NX], const double *U, const double *limits)
{
    for (int k = 0; k < CE_H; k++) {
        const struct ce_model *m = models + k;
        const double *u = U + k * CE_NU;
        double least[CE_NU], most[CE_NU];
        for (int i = 0; i < CE_NU; i++) {
            least[i] = -limits[i / 3] - u[i];
            most[i] = limits[i / 3] - u[i];
        }
        if (k) {
            d_ocp_qp_set_A(k, given(m->A), &s->qp);
            d_ocp_qp_set_Q(k, given(m->Q), &s->qp);
            d_ocp_qp_set_S(k, given(m->S), &s->qp);
            d_ocp_qp_set_q(k, given(m->q), &s->qp);
        }
        d_ocp_qp_set_B(k, given(m->B), &s->qp);
        d_ocp_qp_set_b(k, given(m->b), &s->qp);
        d_ocp_qp_set_R(k, given(m->R), &s->qp);
        d_ocp_qp_set_r(k, given(m->r), &s->qp);
        d_ocp_qp_set_lbu(k, least, &s->qp);
        d_ocp_qp_set_ubu(k, most, &s->qp);
        place_rows(s, k, m, u, limits);
        d_ocp_qp_set_lbx(k + 1, lower[k + 1], &s->qp);
        d_ocp_qp_set_ubx(k + 1, upper[k + 1], &s->qp);
    }
    d_ocp_qp_set_Q(CE_H, given(last->Q), &s->qp);
    d_ocp_qp_set_q(CE_H, given(last->q), &s->qp);
}

/* Put a tangent where the QP's solution is outside a ball; returns how many were put. */
static int add_cuts(struct ce_qp *s, const double *U, const double *limits)
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
            d_ocp_qp_set_D(k, s->D[k], &s->qp);
            d_ocp_qp_set_ug(k, s->g[k], &s->qp);
        }
    }
    if (count) s->slot = (s->slot + 1) % CE_CUTS;
    return count;
}

/* Minimum within the limits: du (CE_H, CE_NU), dx (CE_H + 1, CE_NX), the multipliers (CE_H, CE_NG) of the norms.
 * Returns HPIPM's status (0 solved, 1 iteration limit, 2 step too small, 3 not a
 * number) or 4 for constraints that contradict each other. */
static int minimise(struct ce_qp *s, const double *U, const double *limits, double du[][CE_NU], double dx[][CE_NX],
                    double *multipliers)
{
    int status = 0;
    double equal, unequal, rows[CE_ROWS];
    for (int cut = 0; cut <= CE_CUTS; cut++) {
        d_ocp_qp_ipm_solve(&s->qp, &s->sol, &s->arg, &s->ws);
        d_ocp_qp_ipm_get_status(&s->ws, &status);
        if (status > 1) return status;
        d_ocp_qp_ipm_get_max_res_eq(&s->ws, &equal);
        d_ocp_qp_ipm_get_max_res_ineq(&s->ws, &unequal);
        if (!(equal < CE_RESIDUAL && unequal < CE_RESIDUAL)) return 4;
        if (cut == CE_CUTS || !add_cuts(s, U, limits)) break;
    }
    for (int k = 0; k < CE_H; k++) {
        d_ocp_qp_sol_get_u(k, &s->sol, du[k]);
        d_ocp_qp_sol_get_x(k + 1, &s->sol, dx[k + 1]);
        d_ocp_qp_sol_get_lam_ug(k, &s->sol, rows);
        for (int i = 0; i < CE_NG; i++) multipliers[k * CE_NG + i] = rows[i];
        for (int i = CE_NG; i < CE_ROWS; i++) multipliers[k * CE_NG + (i - CE_NG) % CE_BALLS] += rows[i];
    }
    return status;
}
