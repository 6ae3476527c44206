/* Gauss-Newton SQP iterations. The macros CE_H, CE_NX, CE_NU, CE_NG, CE_NP (sizes) and CE_BALLS (number of 3-vectors in
 * the control) precede this file, as do lqr.c, balls.c and qp.c. The generated model of a stage is a library of its own.
 *
 * Most ticks reach no limit but that of the force. The active-set method then finds the QP's solution at a fraction of
 * the interior point's cost.
 *
 * Layouts: X (H+1, nx), U (H, nu), P (H+1, np), multipliers (H, ng), row after row. The QP is in increments around
 * (X, U); X[0] is the measured state, so that stage 0 has no state. */
typedef long long casadi_int;
typedef int (*ce_stage)(const double **arg, double **res, casadi_int *iw, double *w, int mem);
typedef int (*ce_stage_work)(casadi_int *arg_n, casadi_int *res_n, casadi_int *iw_n, casadi_int *w_n);

struct ce_sqp {
    struct ce_qp qp;
    ce_stage stage;
    struct ce_model models[CE_H], last;
    double lower[CE_H + 1][CE_NX], upper[CE_H + 1][CE_NX]; /* bounds of the state, in increments */
    double du[CE_H][CE_NU], dx[CE_H + 1][CE_NX];
    casadi_int *iw;
    double *w;
};

void ce_sqp_free(struct ce_sqp *s)
{
    if (!s) return;
    free_qp(&s->qp);
    free(s->iw);
    free(s->w);
    free(s);
}

struct ce_sqp *ce_sqp_new(ce_stage stage, ce_stage_work work, int iter_max, double tol, double mu0)
{
    struct ce_sqp *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    casadi_int arg_n, res_n, iw_n, w_n;
    work(&arg_n, &res_n, &iw_n, &w_n);
    s->stage = stage;
    s->iw = malloc(sizeof(casadi_int) * (1 + iw_n));
    s->w = malloc(sizeof(double) * (1 + w_n));
    if (!s->iw || !s->w || !make_qp(&s->qp, iter_max, tol, mu0)) {
        ce_sqp_free(s);
        return NULL;
    }
    return s;
}

/* Model of one stage; returns its cost. */
static double model_of(struct ce_sqp *s, struct ce_model *m, const double *x, const double *u, const double *p,
                       const double *multipliers)
{
    double cost;
    const double *arg[] = {x, u, p, multipliers};
    double *res[] = {m->b, m->A, m->B, m->Q, m->S, m->R, m->q, m->r, m->g, m->C, m->D, &cost};
    s->stage(arg, res, s->iw, s->w, 0);
    return cost;
}

/* Linearise around (X, U); returns the largest defect. The last state is a stage without control. */
static double linearise(struct ce_sqp *s, const double *X, const double *U, const double *P, const double *multipliers,
                        const double *lower, const double *upper, double *cost)
{
    static const double no_control[CE_NU], no_multipliers[CE_NG];
    double worst = 0;
    *cost = model_of(s, &s->last, X + CE_H * CE_NX, no_control, P + CE_H * CE_NP, no_multipliers);
    for (int k = 0; k < CE_H; k++) {
        const double *x = X + k * CE_NX, *after = x + CE_NX;
        struct ce_model *m = s->models + k;
        *cost += model_of(s, m, x, U + k * CE_NU, P + k * CE_NP, multipliers + k * CE_NG);
        for (int i = 0; i < CE_NX; i++) {
            m->b[i] -= after[i];
            /* !(a <= b) also catches NaN */
            if (!(fabs(m->b[i]) <= worst)) worst = fabs(m->b[i]);
            /* A plan that is outside a bound may stay, not go further: the measured state can lie outside. */
            s->lower[k + 1][i] = fmin(lower[i] - after[i], 0);
            s->upper[k + 1][i] = fmax(upper[i] - after[i], 0);
        }
    }
    return worst;
}

/* Whether the increments are within the bounds of the state and the limits of the second mode and later ones: the
 * limits of the first are the control's balls. What is not a number is not within. */
static int within_limits(const struct ce_sqp *s)
{
    for (int k = 0; k < CE_H; k++) {
        const struct ce_model *m = s->models + k;
        double rows[CE_NG];
        for (int i = 0; i < CE_NX; i++)
            if (!(s->lower[k + 1][i] <= s->dx[k + 1][i] && s->dx[k + 1][i] <= s->upper[k + 1][i])) return 0;
        memcpy(rows, m->g, sizeof rows);
        add_product(rows, m->C, s->dx[k], CE_NG, CE_NX, 1);
        add_product(rows, m->D, s->du[k], CE_NG, CE_NU, 1);
        for (int i = CE_BALLS; i < CE_NG; i++)
            if (!(rows[i] <= 0)) return 0;
    }
    return 1;
}

/* Take the whole increment; a control outside its ball is put on it: the exact limit, eq. 31. Returns the largest
 * change of a control, which is not finite where the plan is not. */
static double take_step(const struct ce_sqp *s, double *X, double *U, const double *limits)
{
    double largest = 0, sum = 0;
    for (int k = 0; k < CE_H; k++) {
        double *u = U + k * CE_NU, *after = X + (k + 1) * CE_NX;
        for (int i = 0; i < CE_NX; i++) sum += after[i] += s->dx[k + 1][i];
        for (int i = 0; i < CE_NU; i++) {
            u[i] += s->du[k][i];
            if (!(fabs(s->du[k][i]) <= largest)) largest = fabs(s->du[k][i]);
        }
        for (int b = 0; b < CE_BALLS; b++) {
            double norm = norm3(u + 3 * b);
            if (norm > limits[b])
                for (int c = 0; c < 3; c++) u[3 * b + c] *= limits[b] / norm;
        }
    }
    return isfinite(sum) ? largest : NAN;
}

/* Improve (X, U) in place by full steps: `iterations` of them, or fewer if one changes no control by more than
 * `tolerance`. limits: largest norm per 3-vector of the control. info: number of steps, largest defect and cost before
 * the last one, largest control increment of it. Returns the status of minimise(), or -1 for input that is not finite. */
int ce_sqp_solve(struct ce_sqp *s, double *X, double *U, const double *P, double *multipliers, const double *lower,
                 const double *upper, const double *limits, int iterations, double tolerance, double *info)
{
    int status = 0;
    for (int j = 1; j <= iterations; j++) {
        info[0] = j;
        info[1] = linearise(s, X, U, P, multipliers, lower, upper, &info[2]);
        if (!isfinite(info[1]) || !isfinite(info[2])) return -1;
        status = 0;
        if (!minimise_in_balls(s->models, &s->last, U, limits, multipliers, s->du, s->dx) || !within_limits(s)) {
            place_qp(&s->qp, s->models, &s->last, s->lower, s->upper, U, limits);
            status = minimise(&s->qp, U, limits, s->du, s->dx, multipliers);
            if (status > 1) return status;
        }
        info[3] = take_step(s, X, U, limits);
        if (!isfinite(info[3])) return 3;
        if (info[3] <= tolerance) break;
    }
    return status;
}
