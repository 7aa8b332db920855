/* SPDX-License-Identifier: Apache-2.0 */
#include "suspects.h"

#include <math.h>

double suspects_severity(const struct suspects_usual *usual, double latency_us,
                         double bw_mb_per_s)
{
    double share = usual->percent / 100.0;
    double severity = 0.0;

    if (latency_us > usual->latency_us * (1.0 + share)) {
        severity = latency_us / usual->latency_us;
    }
    if (bw_mb_per_s < usual->bw_mb_per_s * (1.0 - share)) {
        severity = fmax(severity, usual->bw_mb_per_s / bw_mb_per_s);
    }
    return severity;
}

struct suspects_limit suspects_find_limit(const struct histogram *severities,
                                          long long most)
{
    struct suspects_limit limit = {.bin = HISTOGRAM_BINS - 1, .left = most};

    while (limit.bin > 0 && severities->bins[limit.bin] <= limit.left) {
        limit.left -= severities->bins[limit.bin];
        limit.bin--;
    }
    return limit;
}

bool suspects_is_worst(const struct suspects_limit *limit, double severity,
                       long long *before)
{
    int bin = histogram_bin(severity);

    if (bin != limit->bin) {
        return bin > limit->bin;
    }
    return (*before)++ < limit->left;
}
