/* Active-set method for the force limit (Nocedal and Wright 2006, chapter 16.5): |u| <= limit for each 3-vector of the
 * control, a ball.
 *
 * A control that would leave its ball is kept on the ball's tangent plane there, and released when the plane pulls it
 * outwards. The last tick's multipliers tell the planes to begin with, so that one or two recursions are enough. */
#define CE_OUTSIDE 1.005 /* share of the limit from which another tangent plane is worth a solution */
#define CE_PASSES 12     /* recursions; together they cost less than HPIPM's interior point */

static double norm3(const double *v) { return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

/* Make the tangent plane where the vector u meets its ball the one of a control that is at `now`. */
static void place_plane(struct ce_plane *plane, const double *u, const double *now, double limit, double curvature)
{
    const double norm = norm3(u);
    double reached = 0;
    for (int c = 0; c < 3; c++) {
        plane->normal[c] = u[c] / norm;
        reached += plane->normal[c] * now[c];
    }
    for (int c = 0; c < 3; c++) plane->aside[c] = now[c] - reached * plane->normal[c];
    plane->active = 1;
    plane->distance = limit - reached;
    plane->curvature = curvature;
}

/* Multiplier of an active plane at the increment du: the force that keeps the control on it. */
static double pressure(const struct ce_plane *plane, const double *du)
{
    double off = -plane->distance;
    for (int c = 0; c < 3; c++) off += plane->normal[c] * du[c];
    return plane->stiffness * off;
}

/* Release a plane that pulls outwards, place one where a control leaves its ball; returns whether anything changed.
 * The model of the stage has the curvature of the multiplier `given` already. */
static int change_plane(struct ce_plane *plane, const double *now, const double *du, double limit, double given)
{
    const double force = plane->active ? pressure(plane, du) : 0;
    double u[3];
    for (int c = 0; c < 3; c++) u[c] = now[c] + du[c];
    if (force < 0) {
        plane->active = 0;
        return 1;
    }
    if (norm3(u) <= (plane->active ? CE_OUTSIDE : 1) * limit) return 0;
    place_plane(plane, u, now, limit, fmax(force - given, 0) / limit);
    return 1;
}

/* Minimum with every control in its balls: du (CE_H, CE_NU), dx (CE_H + 1, CE_NX) around the controls U (CE_H, CE_NU).
 * The multipliers (CE_H, CE_NG), the balls' first, become its own. Returns whether it was found; else they stay. */
static int minimise_in_balls(const struct ce_model *models, const struct ce_model *last, const double *U,
                             const double *limits, double *multipliers, double du[][CE_NU], double dx[][CE_NX])
{
    struct ce_plane planes[CE_H][CE_BALLS] = {0};
    int changed = 1;
    for (int k = 0; k < CE_H; k++)
        for (int i = 0; i < CE_BALLS; i++) {
            const double *now = U + k * CE_NU + 3 * i;
            if (multipliers[k * CE_NG + i] > 0 && norm3(now) * CE_OUTSIDE > limits[i])
                place_plane(&planes[k][i], now, now, limits[i], 0);
        }
    for (int pass = 0; changed; pass++) {
        if (pass == CE_PASSES || !minimise_on_planes(models, last, planes, du, dx)) return 0;
        changed = 0;
        for (int k = 0; k < CE_H; k++)
            for (int i = 0; i < CE_BALLS; i++) {
                const double given = multipliers[k * CE_NG + i];
                changed |= change_plane(&planes[k][i], U + k * CE_NU + 3 * i, du[k] + 3 * i, limits[i], given);
            }
    }
    memset(multipliers, 0, sizeof(double) * CE_H * CE_NG);
    for (int k = 0; k < CE_H; k++)
        for (int i = 0; i < CE_BALLS; i++)
            if (planes[k][i].active) multipliers[k * CE_NG + i] = pressure(&planes[k][i], du[k] + 3 * i);
    return 1;
}
