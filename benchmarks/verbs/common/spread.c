/* SPDX-License-Identifier: Apache-2.0 */
#include "spread.h"

size_t spread_keep(const int64_t *first_ns, const int64_t *last_ns, size_t n,
                   int64_t limit_ns, double *samples, size_t pairs)
{
    size_t kept = 0;

    for (size_t p = 0; p < pairs; p++) {
        for (size_t i = 0; i < n; i++) {
            if (limit_ns == 0 || last_ns[i] - first_ns[i] <= limit_ns) {
                samples[kept++] = samples[p * n + i];
            }
        }
    }
    return kept / pairs;
}
