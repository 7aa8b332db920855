/* SPDX-License-Identifier: Apache-2.0 */
#include "stripes.h"

struct stripes stripes_cut(enum stripes_policy policy, int rails,
                           size_t threshold_bytes, size_t size_bytes,
                           struct stripes_sender sender)
{
    struct stripes result = {.count = 1,
                             .pieces = {{.size_bytes = size_bytes}}};

    if (policy == STRIPES_BOUND) {
        int owner = sender.pairs > 1 ? sender.pair : sender.side;

        result.pieces[0].rail = owner % rails;
    }
    if (policy != STRIPES_STRIPED || size_bytes <= threshold_bytes ||
        size_bytes < (size_t)rails) {
        return result;
    }
    size_t piece = size_bytes / (size_t)rails;

    result.count = rails;
    for (int r = 0; r < rails; r++) {
        size_t offset = (size_t)r * piece;

        result.pieces[r] = (struct stripe){
            .rail = r,
            .offset = offset,
            .size_bytes = r + 1 < rails ? piece : size_bytes - offset,
        };
    }
    return result;
}
