/* Evidence for a single pushing contact at every candidate point of the links.
 *
 * A point p (frame of joint j) that feels the force f (base axes) loads the joints with
 *
 *     tau = (T0 + p_x T1 + p_y T2 + p_z T3) f = T(p) f,    T = [T0 T1 T2 T3] (n, 12) of body j
 *
 * Frames t of one contact share p, f and a torque bias b:  tau_t = T_t(p) f + b + e_t,  b ~ N(0, B), e_t ~ N(0, R_t / w).
 * Their sums
 *
 *     A = sum w T' R^-1 T (12, 12),  C = sum w T' R^-1 (12, n),  h = sum w T' R^-1 tau (12),
 *     D = sum w R^-1 (n, n),  u = sum w R^-1 tau (n),  s = sum w tau' R^-1 tau
 *
 * and M = (D + B^-1)^-1 leave a quadratic form of the force alone, b being integrated out:
 *
 *     A* = A - C M C',  h* = h - C M u,  s* = s - u' M u.
 *
 * CE_N is the number of joints. Matrices are row-major. */
#include <math.h>
#include <string.h>

#define CE_T 12
#define CE_ANGLES 16 /* directions on the friction cone's surface; a parabola through the best three refines */

struct ce_sums {
    double A[CE_N][CE_T * CE_T], C[CE_N][CE_T * CE_N], h[CE_N][CE_T];
    double D[CE_N * CE_N], u[CE_N], s, frames;
    double T[CE_N][CE_N * CE_T];                               /* of the last frame */
    double form[CE_N][10][6], slope[CE_N][4][3], bound[CE_N];  /* polynomials in p of G and g; evidence without a force */
};

int ce_sums_size(void) { return (int)sizeof(struct ce_sums); }

static void cross(const double *a, const double *b, double *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

/* Inverse of a positive definite matrix (n, n), n <= CE_T, by Cholesky; *log_det of the matrix. Returns 0 where it is not
 * one. */
static int invert(const double *a, int n, double *inverse, double *log_det)
{
    double l[CE_T * CE_T], k[CE_T * CE_T] = {0};
    *log_det = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int m = 0; m < j; m++) sum -= l[i * n + m] * l[j * n + m];
            if (i == j && !(sum > 0)) return 0;
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
            if (i == j) *log_det += log(sum);
        }
    for (int c = 0; c < n; c++) /* k = l^-1 */
        for (int i = c; i < n; i++) {
            double sum = i == c;
            for (int m = c; m < i; m++) sum -= l[i * n + m] * k[m * n + c];
            k[i * n + c] = sum / l[i * n + i];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int m = i > j ? i : j; m < n; m++) sum += k[m * n + i] * k[m * n + j];
            inverse[i * n + j] = sum;
        }
    return 1;
}

/* Joint torque of a force at a point of every body. place: per joint rotation (3, 3), column-major, and origin (3) of its
 * frame; axes: per joint (3); all in base axes. prismatic: per joint 0 or 1. */
static void patterns(struct ce_sums *s, const double *place, const double *axes, const int *prismatic)
{
    memset(s->T, 0, sizeof s->T);
    for (int j = 0; j < CE_N; j++)
        for (int i = 0; i <= j; i++) {
            double *row = s->T[j] + i * CE_T, arm[3];
            const double *axis = axes + 3 * i;
            if (prismatic[i]) { memcpy(row, axis, 3 * sizeof *row); continue; }
            for (int k = 0; k < 3; k++) arm[k] = place[12 * j + 9 + k] - place[12 * i + 9 + k];
            cross(axis, arm, row);
            for (int m = 0; m < 3; m++) cross(axis, place + 12 * j + 3 * m, row + 3 + 3 * m);
        }
}

/* Forget: scale all sums; zero starts anew. */
void ce_forget(struct ce_sums *s, double keep)
{
    double *first = &s->A[0][0], *last = &s->frames;
    for (double *value = first; value <= last; value++) *value *= keep;
}

/* Add a frame: external torque tau (n), covariance R (n, n), weight w. Returns 0 where R is not positive definite. */
int ce_add(struct ce_sums *s, const double *place, const double *axes, const int *prismatic, const double *tau,
           const double *R, double w)
{
    double W[CE_N * CE_N], log_det;
    patterns(s, place, axes, prismatic);
    if (!invert(R, CE_N, W, &log_det)) return 0;
    for (int i = 0; i < CE_N * CE_N; i++) s->D[i] += w * W[i];
    for (int i = 0; i < CE_N; i++) {
        double sum = 0;
        for (int k = 0; k < CE_N; k++) sum += W[i * CE_N + k] * tau[k];
        s->u[i] += w * sum;
        s->s += w * tau[i] * sum;
    }
    s->frames += w;
    for (int j = 0; j < CE_N; j++)
        for (int a = 0; a < CE_T; a++) {
            double row[CE_N] = {0};
            for (int i = 0; i <= j; i++)
                for (int k = 0; k < CE_N; k++) row[k] += w * s->T[j][i * CE_T + a] * W[i * CE_N + k];
            for (int k = 0; k < CE_N; k++) {
                s->C[j][a * CE_N + k] += row[k];
                s->h[j][a] += row[k] * tau[k];
            }
            for (int k = 0; k <= j; k++)
                for (int b = 0; b < CE_T; b++) s->A[j][a * CE_T + b] += row[k] * s->T[j][k * CE_T + b];
        }
    return 1;
}

/* Integrate the last `size` entries out of the quadratic form exp(h'x - x'A x / 2) of n of them, of which each has the
 * prior N(0, variance). Adds the gain of log-evidence to *bound. Returns 0 where A is not usable. */
static int integrate_out(double *A, double *h, int n, int size, double variance, double *bound)
{
    int first = n - size;
    double block[CE_T * CE_T], inverse[CE_T * CE_T], solved[CE_T * CE_T], found[CE_T], log_det;
    if (!(variance > 0)) return 1;
    for (int i = 0; i < size; i++)
        for (int k = 0; k < size; k++) block[i * size + k] = A[(first + i) * n + first + k] + (i == k) / variance;
    if (!invert(block, size, inverse, &log_det)) return 0;
    *bound -= 0.5 * (log_det + size * log(variance));
    for (int i = 0; i < size; i++) {
        found[i] = 0;
        for (int k = 0; k < size; k++) found[i] += inverse[i * size + k] * h[first + k];
        *bound += 0.5 * found[i] * h[first + i];
        for (int a = 0; a < n; a++) {
            solved[i * n + a] = 0;
            for (int k = 0; k < size; k++) solved[i * n + a] += inverse[i * size + k] * A[(first + k) * n + a];
        }
    }
    double rows[CE_T * CE_T], right[CE_T];
    memcpy(rows, A + first * n, sizeof *rows * size * n);
    memcpy(right, h, sizeof *right * n);
    for (int a = 0; a < n; a++)
        for (int i = 0; i < size; i++) {
            h[a] -= rows[i * n + a] * found[i];
            for (int b = 0; b < n; b++) A[a * n + b] -= rows[i * n + a] * solved[i * n + b];
        }
    return 1;
}

/* Integrate out the bias, with the covariance B (n, n), and where about its candidate the contact is: that offset d turns
 * the force into d_x T1 f + d_y T2 f + d_z T3 f, nine unknowns of the variance spread[j] * force^2, with spread [m^2] per
 * body and the expected force [N]. Returns 0 where B is not usable. */
int ce_prepare(struct ce_sums *s, const double *B, const double *spread, double force)
{
    double V[CE_N * CE_N], M[CE_N * CE_N], Mu[CE_N], log_prior, log_det, bound = -0.5 * s->s;
    if (!invert(B, CE_N, V, &log_prior)) return 0;
    for (int i = 0; i < CE_N * CE_N; i++) V[i] += s->D[i];
    if (!invert(V, CE_N, M, &log_det)) return 0;
    bound -= 0.5 * (log_prior + log_det);
    for (int i = 0; i < CE_N; i++) {
        Mu[i] = 0;
        for (int k = 0; k < CE_N; k++) Mu[i] += M[i * CE_N + k] * s->u[k];
        bound += 0.5 * Mu[i] * s->u[i];
    }
    for (int j = 0; j < CE_N; j++) {
        double A[CE_T * CE_T], *h = s->slope[j][0];
        s->bound[j] = bound;
        for (int a = 0; a < CE_T; a++) {
            double CM[CE_N] = {0};
            h[a] = s->h[j][a];
            for (int i = 0; i < CE_N; i++)
                for (int k = 0; k < CE_N; k++) CM[k] += s->C[j][a * CE_N + i] * M[i * CE_N + k];
            for (int i = 0; i < CE_N; i++) h[a] -= s->C[j][a * CE_N + i] * Mu[i];
            for (int b = 0; b < CE_T; b++) {
                double sum = s->A[j][a * CE_T + b];
                for (int k = 0; k < CE_N; k++) sum -= CM[k] * s->C[j][b * CE_N + k];
                A[a * CE_T + b] = sum;
            }
        }
        if (!integrate_out(A, h, CE_T, CE_T - 3, spread[j] * force * force, &s->bound[j])) return 0;
        for (int m = 0, e = 0; m < 4; m++)
            for (int l = m; l < 4; l++, e++)
                for (int a = 0, c = 0; a < 3; a++)
                    for (int b = a; b < 3; b++, c++) {
                        double sum = A[(3 * m + a) * CE_T + 3 * l + b];
                        if (l > m) sum += A[(3 * l + a) * CE_T + 3 * m + b];
                        s->form[j][e][c] = sum;
                    }
    }
    return 1;
}

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* y = G x with G = [G0 G1 G2; G1 G3 G4; G2 G4 G5] */
static void multiply(const double *G, const double *x, double *y)
{
    y[0] = G[0] * x[0] + G[1] * x[1] + G[2] * x[2];
    y[1] = G[1] * x[0] + G[3] * x[1] + G[4] * x[2];
    y[2] = G[2] * x[0] + G[4] * x[1] + G[5] * x[2];
}

/* The best force f on the surface of the friction cone about n: f = length (n + cos(angle) t1 + sin(angle) t2), where
 * t1 and t2 are tangents as long as the friction coefficient. turn: cosine and sine of the angles that are tried. */
static void on_cone(const double *G, const double *g, const double *n, double friction, double turn[2][CE_ANGLES], double *f)
{
    double t1[3], t2[3], axis[3] = {0}, Gn[3], G1[3], G2[3], value[CE_ANGLES];
    int best = 0;
    axis[fabs(n[0]) < 0.6 ? 0 : 1] = 1;
    cross(n, axis, t1);
    double scale = friction / sqrt(dot(t1, t1));
    for (int k = 0; k < 3; k++) t1[k] *= scale;
    cross(n, t1, t2);
    multiply(G, n, Gn);
    multiply(G, t1, G1);
    multiply(G, t2, G2);
    const double l0 = dot(g, n), l1 = dot(g, t1), l2 = dot(g, t2);
    const double b00 = dot(n, Gn), b01 = 2 * dot(t1, Gn), b02 = 2 * dot(t2, Gn);
    const double b11 = dot(t1, G1), b12 = 2 * dot(t1, G2), b22 = dot(t2, G2);
    for (int a = 0; a < CE_ANGLES; a++) {
        double x = turn[0][a], y = turn[1][a], slope = l0 + l1 * x + l2 * y;
        slope = slope > 0 ? slope : 0;
        value[a] = slope * slope / (b00 + x * (b01 + b11 * x + b12 * y) + y * (b02 + b22 * y));
    }
    for (int a = 1; a < CE_ANGLES; a++)
        if (value[a] > value[best]) best = a;
    double left = value[(best + CE_ANGLES - 1) % CE_ANGLES], right = value[(best + 1) % CE_ANGLES];
    double bend = left - 2 * value[best] + right, angle = bend < 0 ? M_PI / CE_ANGLES * (left - right) / bend : 0;
    double c = cos(angle), s = sin(angle), x = c * turn[0][best] - s * turn[1][best], y = s * turn[0][best] + c * turn[1][best];
    double slope = l0 + l1 * x + l2 * y;
    double length = slope > 0 ? slope / (b00 + x * (b01 + b11 * x + b12 * y) + y * (b02 + b22 * y)) : 0;
    for (int k = 0; k < 3; k++) f[k] = length * (n[k] + x * t1[k] + y * t2[k]);
}

/* Evidence of candidates begin to end. joint, points, normals (outwards) in the frame of their joint; place as above.
 * friction: largest ratio of tangential to normal force; normal_std, tangent_std [N]: prior of the force, which stands for
 * the cone's volume in Laplace's approximation. evidence: logarithm, force (3) in base axes per candidate. */
void ce_scan(const struct ce_sums *s, int begin, int end, const int *joint, const double *points, const double *normals,
             const double *place, double friction, double normal_std, double tangent_std, double *evidence, double *force)
{
    double turn[2][CE_ANGLES], side = 1 / (tangent_std * tangent_std), more = 1 / (normal_std * normal_std) - side;
    double log_prior = log(side * side * (side + more));
    for (int k = 0; k < CE_ANGLES; k++) {
        turn[0][k] = cos(2 * M_PI * k / CE_ANGLES);
        turn[1][k] = sin(2 * M_PI * k / CE_ANGLES);
    }
    for (int c = begin; c < end; c++) {
        int j = joint[c];
        const double P[4] = {1, points[3 * c], points[3 * c + 1], points[3 * c + 2]}, *R = place + 12 * j;
        double G[6] = {0}, g[3] = {0}, n[3], f[3];
        for (int m = 0, e = 0; m < 4; m++)
            for (int l = m; l < 4; l++, e++)
                for (int k = 0; k < 6; k++) G[k] += P[m] * P[l] * s->form[j][e][k];
        for (int m = 0; m < 4; m++)
            for (int k = 0; k < 3; k++) g[k] += P[m] * s->slope[j][m][k];
        for (int k = 0; k < 3; k++) /* inwards, base axes */
            n[k] = -(R[k] * normals[3 * c] + R[3 + k] * normals[3 * c + 1] + R[6 + k] * normals[3 * c + 2]);
        for (int a = 0, k = 0; a < 3; a++)
            for (int b = a; b < 3; b++, k++) G[k] += (a == b) * side + more * n[a] * n[b];
        double i00 = G[3] * G[5] - G[4] * G[4], i01 = G[2] * G[4] - G[1] * G[5], i02 = G[1] * G[4] - G[2] * G[3];
        double det = G[0] * i00 + G[1] * i01 + G[2] * i02;
        f[0] = (i00 * g[0] + i01 * g[1] + i02 * g[2]) / det;
        f[1] = (i01 * g[0] + (G[0] * G[5] - G[2] * G[2]) * g[1] + (G[1] * G[2] - G[0] * G[4]) * g[2]) / det;
        f[2] = (i02 * g[0] + (G[1] * G[2] - G[0] * G[4]) * g[1] + (G[0] * G[3] - G[1] * G[1]) * g[2]) / det;
        double push = dot(f, n), Gf[3];
        if (!(push > 0 && dot(f, f) <= (1 + friction * friction) * push * push)) on_cone(G, g, n, friction, turn, f);
        multiply(G, f, Gf);
        memcpy(force + 3 * c, f, sizeof f);
        evidence[c] = s->bound[j] + dot(g, f) - 0.5 * dot(f, Gf) - 0.5 * log(det) + 0.5 * log_prior;
    }
}
