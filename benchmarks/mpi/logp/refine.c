/* SPDX-License-Identifier: Apache-2.0 */
#include "refine.h"

#include <math.h>

enum { REFINE_LEAST_GAP = 64, REFINE_GAP_PART = 16 };

static const double REFINE_TOLERANCE = 0.20;

/* ratio: how far the line goes on, in distances of its two points. */
static bool refine_is_off(const struct logp_estimate *a,
                          const struct logp_estimate *b,
                          const struct logp_estimate *c, double ratio)
{
    double expected = b->p50 + ratio * (b->p50 - a->p50);
    double unsure = c->half + (1.0 + ratio) * b->half + ratio * a->half;

    return fabs(c->p50 - expected) > REFINE_TOLERANCE * fabs(expected) + unsure;
}

bool refine_has_jump(const struct logp_point points[3])
{
    const struct logp_point *a = &points[0];
    const struct logp_point *b = &points[1];
    const struct logp_point *c = &points[2];
    double ratio = (double)(c->size_bytes - b->size_bytes) /
                   (double)(b->size_bytes - a->size_bytes);

    return refine_is_off(&a->os, &b->os, &c->os, ratio) ||
           refine_is_off(&a->or, &b->or, &c->or, ratio) ||
           refine_is_off(&a->g, &b->g, &c->g, ratio);
}

int refine_middle(int below, int above)
{
    int gap = above - below;

    return gap >= REFINE_LEAST_GAP && gap > below / REFINE_GAP_PART
               ? below + gap / 2
               : 0;
}
