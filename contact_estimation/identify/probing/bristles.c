/* Bristles behind the tips of contacts, for one sample during which the velocity changes linearly: see drag() in
 * bristles.py. Arrays (contacts, 3) are row-major; weights (3, contacts) are kept, begin and end. */
#include <math.h>

void ce_drag(int contacts, int parts, double dt, double shortest, const double *deflection, const double *begin,
             const double *end, const double *length, double *moved, double *weights)
{
    const double part = dt / parts;
    for (int i = 0; i < contacts; i++) {
        const double limit = fmax(length[i], shortest);
        double z[3], kept = 1.0, first = 0.0, last = 0.0;
        for (int axis = 0; axis < 3; axis++) z[axis] = deflection[3 * i + axis];
        for (int k = 0; k < parts; k++) {
            const double share = (k + 0.5) / parts;
            double square = 0.0;
            for (int axis = 0; axis < 3; axis++) {
                const double from = begin[3 * i + axis];
                z[axis] += part * (from + share * (end[3 * i + axis] - from));
                square += z[axis] * z[axis];
            }
            const double scale = 1.0 / fmax(sqrt(square) / limit, 1.0);
            for (int axis = 0; axis < 3; axis++) z[axis] *= scale;
            kept *= scale;
            first = scale * (first + part * (1.0 - share));
            last = scale * (last + part * share);
        }
        for (int axis = 0; axis < 3; axis++) moved[3 * i + axis] = z[axis];
        weights[i] = kept, weights[contacts + i] = first, weights[2 * contacts + i] = last;
    }
}
