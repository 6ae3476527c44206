/* The arithmetic of the probing filter: prediction, motion, and the wrench by cubature, regression, Kalman step and merge
 * (paper 4, eq. 8 and 16-24). The text of the generated function ce_wrench (c, conditions -> wrench of every mode)
 * precedes this file, as do the macros CE_K (entries of c), CE_W (components of the wrench), CE_MODES, CE_CONDITIONS
 * (entries of the conditions) and CE_AXES (axes of pose and twist).
 *
 * Matrices are row-major. n is the size of the filter's state [pose error; velocity; acceleration; ...], P its covariance
 * (n, n). Nothing is allocated, nothing is kept. */
#include <math.h>
#include <string.h>

#define CE_MOST (CE_K > CE_W ? CE_K : CE_W)
#define CE_BLOCK 256 /* points at once: what they need stays in the processor's fastest cache */

/* P := F P F' + Q for white jerk of the density jerk (CE_AXES,) over dt. */
void ce_predict(int n, double dt, const double *jerk, double *P)
{
    const int m = CE_AXES;
    const double half = 0.5 * dt * dt, d3 = dt * half, d4 = dt * d3, d5 = dt * d4;
    const double q[3][3] = {{d5 / 10.0, d4 / 4.0, d3 / 3.0}, {d4 / 4.0, d3 / 1.5, half}, {d3 / 3.0, half, dt}};
    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++) {
            double velocity = P[(m + i) * n + k], acceleration = P[(2 * m + i) * n + k];
            P[i * n + k] += dt * velocity + half * acceleration;
            P[(m + i) * n + k] += dt * acceleration;
        }
    for (int k = 0; k < n; k++)
        for (int i = 0; i < m; i++) {
            double *row = P + (size_t)k * n, velocity = row[m + i], acceleration = row[2 * m + i];
            row[i] += dt * velocity + half * acceleration;
            row[m + i] += dt * acceleration;
        }
    for (int i = 0; i < m; i++)
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) P[(a * m + i) * n + b * m + i] += jerk[i] * q[a][b];
}

/* Measure pose error and velocity, the first 2 CE_AXES states, with independent noise of the given variances: one scalar
 * update after the other. The innovation (2 CE_AXES,) is used up; increment (n,) is the state's. */
void ce_correct_motion(int n, const double *innovation, const double *variances, double *P, double *increment)
{
    double gain[n];
    memset(increment, 0, sizeof(double) * n);
    for (int i = 0; i < 2 * CE_AXES; i++) {
        double total = P[i * n + i] + variances[i], left = innovation[i] - increment[i];
        for (int k = 0; k < n; k++) gain[k] = P[i * n + k] / total;
        for (int k = 0; k < n; k++) increment[k] += gain[k] * left;
        for (int j = 0; j < n; j++) {
            double *row = P + (size_t)j * n, share = gain[j] * total;
            for (int k = 0; k < n; k++) row[k] -= share * gain[k];
        }
    }
}

/* covariance (rows, rows) := S P S' for a matrix S (rows, n). */
void ce_project(int rows, int n, const double *s, const double *P, double *covariance)
{
    double part[n];
    for (int i = 0; i < rows; i++) {
        memset(part, 0, sizeof part);
        for (int j = 0; j < n; j++) {
            const double factor = s[(size_t)i * n + j], *row = P + (size_t)j * n;
            if (factor != 0.0)
                for (int k = 0; k < n; k++) part[k] += factor * row[k];
        }
        for (int j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int k = 0; k < n; k++) sum += part[k] * s[(size_t)j * n + k];
            covariance[i * rows + j] = covariance[j * rows + i] = sum;
        }
    }
}

/* Lower Cholesky factor l of a (n, n); returns 0 where a is not positive definite. */
static int ce_factor(int n, const double *a, double *l)
{
    memset(l, 0, sizeof(double) * n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
            if (i == j && !(sum > 0.0)) return 0;
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
    return 1;
}

/* Eigenvalues (n,) and eigenvectors (columns of v) of a symmetric matrix a, which is lost, by cyclic Jacobi rotations. */
static void ce_eigen(int n, double *a, double *values, double *v)
{
    for (int i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < 30; sweep++) {
        double off = 0.0, all = 0.0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                all += a[i * n + j] * a[i * n + j];
                if (i != j) off += a[i * n + j] * a[i * n + j];
            }
        if (off <= 1e-32 * all) break; /* rounding of double */
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                if (a[p * n + q] == 0.0) continue;
                double theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
                double t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
                double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
                for (int k = 0; k < n; k++) {
                    double kp = a[k * n + p], kq = a[k * n + q];
                    a[k * n + p] = c * kp - s * kq, a[k * n + q] = s * kp + c * kq;
                }
                for (int k = 0; k < n; k++) {
                    double pk = a[p * n + k], qk = a[q * n + k];
                    a[p * n + k] = c * pk - s * qk, a[q * n + k] = s * pk + c * qk;
                }
                for (int k = 0; k < n; k++) {
                    double kp = v[k * n + p], kq = v[k * n + q];
                    v[k * n + p] = c * kp - s * kq, v[k * n + q] = s * kp + c * kq;
                }
            }
    }
    for (int i = 0; i < n; i++) values[i] = a[i * n + i];
}

/* a := its nearest matrix with eigenvalues of at least share x the largest one; 0 projects on the semidefinite ones. */
static void ce_lift(int n, double *a, double share)
{
    double copy[CE_MOST * CE_MOST], v[CE_MOST * CE_MOST], values[CE_MOST], most = 1e-300, least = INFINITY;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) copy[i * n + j] = 0.5 * (a[i * n + j] + a[j * n + i]);
    ce_eigen(n, copy, values, v);
    for (int i = 0; i < n; i++) most = fmax(most, values[i]), least = fmin(least, values[i]);
    double floor = share * most;
    if (share == 0.0 && least >= 0.0) return;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = i == j ? floor : 0.0;
            for (int k = 0; k < n; k++) sum += v[i * n + k] * fmax(values[k], floor) * v[j * n + k];
            a[i * n + j] = sum;
        }
}

/* Cholesky factor of a matrix that rounding or negative weights may have made indefinite: then of the nearest usable one. */
void ce_root(int n, const double *a, double *l)
{
    double lifted[CE_MOST * CE_MOST];
    if (ce_factor(n, a, l)) return;
    memcpy(lifted, a, sizeof(double) * n * n);
    ce_lift(n, lifted, 1e-12);
    ce_factor(n, lifted, l);
}

/* Project on the positive semidefinite matrices; a rule with negative weights can miss it where a contact opens. */
static void ce_positive(int n, double *a)
{
    double l[CE_MOST * CE_MOST];
    if (!ce_factor(n, a, l)) ce_lift(n, a, 0.0);
}

/* Wrenches (CE_MODES CE_W, size) at points (CE_K, size), whose rows are stride apart. Inlined, the generated function becomes
 * vector instructions. */
__attribute__((flatten)) static void ce_evaluate(int size, size_t stride, const double *restrict conditions,
                                                 const double *restrict points, double *restrict wrenches)
{
    double known[CE_CONDITIONS];
    memcpy(known, conditions, sizeof known);
#pragma GCC ivdep
    for (int k = 0; k < size; k++) {
        double c[CE_K], out[CE_MODES * CE_W];
        const double *given[2] = {c, known};
        double *result[1] = {out};
        for (int i = 0; i < CE_K; i++) c[i] = points[i * stride + k];
        ce_wrench(given, result, 0, 0, 0);
        for (int i = 0; i < CE_MODES * CE_W; i++) wrenches[i * stride + k] = out[i];
    }
}

void ce_wrenches(int count, const double *conditions, const double *points, double *wrenches)
{
    ce_evaluate(count, count, conditions, points, wrenches);
}

/* Points (CE_K, count) of a rule under the normal density of the last d entries of c, its factor (d, d), and the wrenches
 * (CE_MODES CE_W, count) there. The rule, here and below: the centre, then +-radius times directions (d, m) for each of the
 * radii (shells,); count = 1 + 2 shells m. */
void ce_spread(int d, int m, int shells, const double *directions, const double *radii, const double *mean,
               const double *covariance, const double *conditions, double *root, double *points, double *wrenches)
{
    const int first = CE_K - d, count = 1 + 2 * shells * m;
    double part[CE_K * CE_K], turned[CE_BLOCK];
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++) part[i * d + j] = covariance[(first + i) * CE_K + first + j];
    ce_root(d, part, root);
    for (int i = 0; i < CE_K; i++) points[(size_t)i * count] = mean[i];
    ce_evaluate(1, count, conditions, points, wrenches);
    for (int begin = 0; begin < m; begin += CE_BLOCK) {
        const int size = m - begin < CE_BLOCK ? m - begin : CE_BLOCK;
        for (int i = 0; i < CE_K; i++) {
            memset(turned, 0, sizeof turned);
            for (int j = 0; j <= i - first; j++) {
                const double factor = root[(i - first) * d + j], *axis = directions + (size_t)j * m + begin;
                for (int k = 0; k < size; k++) turned[k] += factor * axis[k];
            }
            for (int s = 0; s < 2 * shells; s++) {
                const double radius = s % 2 ? -radii[s / 2] : radii[s / 2];
                double *row = points + (size_t)i * count + 1 + s * m + begin;
                for (int k = 0; k < size; k++) row[k] = mean[i] + radius * turned[k];
            }
        }
        for (int s = 0; s < 2 * shells; s++) {
            const int at = 1 + s * m + begin;
            ce_evaluate(size, count, conditions, points + at, wrenches + at);
        }
    }
}

/* Regress the wrench of one mode, values (CE_W, count), statistically and linearly on the d entries that vary: mean
 * (CE_W,), slope (CE_W, d) and covariance of the residual (CE_W, CE_W). Sums are taken about the value at the centre, which
 * costs no digits; the rule's weights (count,) sum to one and are equal at opposite points. */
void ce_regress(int d, int m, int shells, const double *directions, const double *radii, const double *weights,
                const double *root, const double *values, double *mean, double *slope, double *residual)
{
    const int count = 1 + 2 * shells * m;
    double half[CE_W * CE_K] = {0.0}, weighted[CE_W * CE_W] = {0.0}, moved[CE_W] = {0.0};
    for (int begin = 0; begin < m; begin += CE_BLOCK) {
        const int size = m - begin < CE_BLOCK ? m - begin : CE_BLOCK;
        for (int a = 0; a < CE_W; a++) {
            const double *z = values + (size_t)a * count, origin = z[0];
            double odd[CE_BLOCK] = {0.0}; /* weight radius (value - opposite value), summed over the shells */
            for (int s = 0; s < 2 * shells; s++) {
                const int at = 1 + s * m + begin;
                const double radius = s % 2 ? -radii[s / 2] : radii[s / 2];
                double scaled[CE_BLOCK], sum = 0.0;
                for (int k = 0; k < size; k++) {
                    sum += scaled[k] = weights[at + k] * (z[at + k] - origin);
                    odd[k] += radius * scaled[k];
                }
                moved[a] += sum;
                for (int b = 0; b <= a; b++) {
                    const double *other = values + (size_t)b * count + at, centre = other[-at];
                    sum = 0.0;
                    for (int k = 0; k < size; k++) sum += scaled[k] * (other[k] - centre);
                    weighted[a * CE_W + b] += sum;
                }
            }
            for (int j = 0; j < d; j++) {
                const double *axis = directions + (size_t)j * m + begin;
                double sum = 0.0;
                for (int k = 0; k < size; k++) sum += axis[k] * odd[k];
                half[a * d + j] += sum;
            }
        }
    }
    for (int a = 0; a < CE_W; a++) {
        mean[a] = values[(size_t)a * count] + moved[a];
        for (int b = 0; b <= a; b++)
            weighted[b * CE_W + a] = weighted[a * CE_W + b] -= moved[a] * moved[b];
    }
    for (int a = 0; a < CE_W; a++) {
        for (int i = d - 1; i >= 0; i--) { /* slope root = half */
            double sum = half[a * d + i];
            for (int j = i + 1; j < d; j++) sum -= slope[a * d + j] * root[j * d + i];
            slope[a * d + i] = sum / root[i * d + i];
        }
        for (int b = 0; b < CE_W; b++) {
            double sum = weighted[a * CE_W + b];
            for (int j = 0; j < d; j++) sum -= half[a * d + j] * half[b * d + j];
            residual[a * CE_W + b] = sum;
        }
    }
    ce_positive(CE_W, residual);
}

/* Kalman step of one mode with a regressed wrench, eq. 19-21: innovation = H x + e.
 *
 * H is slope (CE_W, CE_K) times selector (CE_K, n); the columns from first on are bias_map (CE_W, biases). e has the noise
 * of the sensor (CE_W, CE_W) and the residual (CE_W, CE_W), of which all but the white share is multiplied by colour.
 * Results: increment (n,), spread (CE_W, n), of which covariance - spread' spread is the covariance after
 * the step, and the whitened innovation (CE_W,). Returns the log-likelihood. */
double ce_step(int n, const double *covariance, const double *selector, int first, int biases, const double *bias_map,
               const double *innovation, const double *noise, double colour, const double *slope,
               const double *residual, const double *white, double *increment, double *spread, double *whitened)
{
    double total[CE_W * CE_W], root[CE_W * CE_W], repeated[CE_W * CE_W], jacobian[CE_W * n], likelihood = 0.0;
    memset(jacobian, 0, sizeof jacobian);
    for (int a = 0; a < CE_W; a++) {
        for (int i = 0; i < CE_K; i++)
            for (int k = 0; k < n; k++) jacobian[a * n + k] += slope[a * CE_K + i] * selector[(size_t)i * n + k];
        for (int k = 0; k < biases; k++) jacobian[a * n + first + k] = bias_map[a * biases + k];
    }
    for (int i = 0; i < CE_W * CE_W; i++) repeated[i] = residual[i] - white[i];
    ce_positive(CE_W, repeated);
    for (int a = 0; a < CE_W; a++) {
        double *cross = spread + (size_t)a * n;
        memset(cross, 0, sizeof(double) * n);
        for (int i = 0; i < n; i++) {
            const double factor = jacobian[(size_t)a * n + i], *row = covariance + (size_t)i * n;
            if (factor != 0.0)
                for (int k = 0; k < n; k++) cross[k] += factor * row[k];
        }
        for (int b = 0; b <= a; b++) {
            double sum = noise[a * CE_W + b] + white[a * CE_W + b] + colour * repeated[a * CE_W + b];
            for (int k = 0; k < n; k++) sum += cross[k] * jacobian[(size_t)b * n + k];
            total[a * CE_W + b] = total[b * CE_W + a] = sum;
        }
    }
    ce_root(CE_W, total, root);
    memset(increment, 0, sizeof(double) * n);
    for (int a = 0; a < CE_W; a++) { /* root whitened = innovation, root spread = cross' */
        double sum = innovation[a], *own = spread + (size_t)a * n, scale = 1.0 / root[a * CE_W + a];
        for (int b = 0; b < a; b++) {
            const double factor = root[a * CE_W + b], *before = spread + (size_t)b * n;
            sum -= factor * whitened[b];
            for (int k = 0; k < n; k++) own[k] -= factor * before[k];
        }
        whitened[a] = sum * scale;
        for (int k = 0; k < n; k++) own[k] *= scale, increment[k] += own[k] * whitened[a];
        likelihood -= 0.5 * whitened[a] * whitened[a] + 0.5 * log(2.0 * M_PI) + log(root[a * CE_W + a]);
    }
    return likelihood;
}

/* Merge the steps of several modes, eq. 22-23: increments (modes, n), spreads (modes, CE_W, n), weights (modes,). The
 * covariance (n, n) before the steps becomes that of the mixture; returns its mean's increment (n,). */
void ce_merge(int modes, int n, const double *weights, double *increments, const double *spreads, double *covariance,
              double *increment)
{
    memset(increment, 0, sizeof(double) * n);
    for (int m = 0; m < modes; m++)
        for (int k = 0; k < n; k++) increment[k] += weights[m] * increments[(size_t)m * n + k];
    for (int m = 0; m < modes; m++) {
        double *apart = increments + (size_t)m * n;
        for (int k = 0; k < n; k++) apart[k] -= increment[k];
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                double sum = apart[i] * apart[k];
                for (int a = 0; a < CE_W; a++) {
                    const double *row = spreads + ((size_t)m * CE_W + a) * n;
                    sum -= row[i] * row[k];
                }
                covariance[(size_t)i * n + k] += weights[m] * sum;
            }
    }
}
