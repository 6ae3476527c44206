/* Bristles behind the tips of contacts, and their error's part in the filter's covariance: see bristles.py.
 *
 * Arrays per contact (contacts, 3) are row-major, as are rows (surfaces, motion), the gradients of the transverse
 * velocity by the first `motion` states, and the covariance (n, n). The error across the bristles of surface j is state
 * error + j. weights (3, contacts) are the factors on the error before the sample, and on the errors of the velocity
 * across at its begin and end. */
#include <math.h>

#define CE_PARTS 16         /* of a sample over which the deflection is integrated: the result must not depend on the rate */
#define CE_SHORTEST 1e-9    /* [m] length of an unloaded contact; a deflection below it has no direction */

struct ce_bristles {
    long contacts, surfaces, n, motion, error;
    const long *surface_of, *contact_of; /* (contacts,); the first contact (surfaces,) of a surface */
    double *deflection, *begin, *end;    /* (contacts, 3) [m], [m/s]: tangential velocities at begin and end of the sample */
    const double *length;                /* (contacts,) [m] at which each contact slides */
    double *moved, *weights;
    double *rows, *across;               /* at the last sample; across (contacts, 3): unit vectors */
    const double *new_rows, *new_across; /* at this one */
    double *state, *covariance;                  /* state (surfaces,): the estimated errors */
    double *turns;                       /* (surfaces,) [1/s] transverse velocity per error that turns friction alike */
};

static double dot3(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* Draw the bristles behind their tips for a sample of length dt, during which the velocity changes linearly. */
void ce_draw(const struct ce_bristles *s, double dt)
{
    const double part = dt / CE_PARTS;
    for (int i = 0; i < s->contacts; i++) {
        const double limit = fmax(s->length[i], CE_SHORTEST), *begin = s->begin + 3 * i, *end = s->end + 3 * i;
        double z[3], kept = 1.0, first = 0.0, last = 0.0;
        for (int axis = 0; axis < 3; axis++) z[axis] = s->deflection[3 * i + axis];
        for (int k = 0; k < CE_PARTS; k++) {
            const double share = (k + 0.5) / CE_PARTS;
            for (int axis = 0; axis < 3; axis++) z[axis] += part * (begin[axis] + share * (end[axis] - begin[axis]));
            const double scale = 1.0 / fmax(sqrt(dot3(z, z)) / limit, 1.0);
            for (int axis = 0; axis < 3; axis++) z[axis] *= scale;
            kept *= scale;
            first = scale * (first + part * (1.0 - share));
            last = scale * (last + part * share);
        }
        for (int axis = 0; axis < 3; axis++) s->moved[3 * i + axis] = z[axis];
        s->weights[i] = kept, s->weights[s->contacts + i] = first, s->weights[2 * s->contacts + i] = last;
    }
}

/* Change the covariance by error = kept error + share (velocity across); kept, share (contacts,). */
static void mix(const struct ce_bristles *s, const double *kept, const double *share)
{
    for (int turn = 0; turn < 2; turn++) { /* rows, then columns */
        const long along = turn ? s->n : 1, across = turn ? 1 : s->n;
        for (int j = 0; j < s->surfaces; j++) {
            const double old = kept[s->contact_of[j]], new = share[s->contact_of[j]];
            double *own = s->covariance + (s->error + j) * across;
            for (int k = 0; k < s->n; k++) {
                double sum = old * own[k * along];
                for (int i = 0; i < s->motion; i++)
                    sum += new * s->rows[j * s->motion + i] * s->covariance[i * across + k * along];
                own[k * along] = sum;
            }
        }
    }
}

/* Move the estimated error from the state to the deflection. */
void ce_absorb_error(const struct ce_bristles *s)
{
    for (int i = 0; i < 3 * s->contacts; i++) s->deflection[i] += s->state[s->surface_of[i / 3]] * s->across[i];
    for (int j = 0; j < s->surfaces; j++) s->state[j] = 0.0;
}

/* Predict over a sample of length dt: the bristles keep what they keep of their error, and take the last twist's share. */
void ce_predict_bristles(const struct ce_bristles *s, double dt)
{
    ce_draw(s, dt);
    mix(s, s->weights, s->weights + s->contacts);
}

/* Update over a sample of length dt with the estimated motion; the covariance takes this twist's share of error. */
void ce_follow(const struct ce_bristles *s, double dt)
{
    double turned[s->contacts]; /* at a reversal the side that counts as positive changes */
    ce_draw(s, dt);
    for (int i = 0; i < s->contacts; i++) turned[i] = dot3(s->new_across + 3 * i, s->across + 3 * i);
    for (int j = 0; j < s->surfaces; j++) s->state[j] *= turned[s->contact_of[j]];
    for (int i = 0; i < 3 * s->contacts; i++) {
        s->deflection[i] = s->moved[i];
        s->begin[i] = s->end[i];
        s->across[i] = s->new_across[i];
    }
    for (int i = 0; i < s->surfaces * s->motion; i++) s->rows[i] = s->new_rows[i];
    ce_absorb_error(s);
    mix(s, turned, s->weights + 2 * s->contacts);
    for (int j = 0; j < s->surfaces; j++) {
        const double *v = s->begin + 3 * s->contact_of[j], *z = s->deflection + 3 * s->contact_of[j];
        s->turns[j] = sqrt(dot3(v, v) / fmax(dot3(z, z), CE_SHORTEST * CE_SHORTEST));
    }
}
