/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include "budget.h"

#include <math.h>

enum {
    LOGP_FIRST_FLOOD = 16, /* messages */
    LOGP_FLOODS = 5,       /* of each length */
    LOGP_LEAST = 2,        /* samples of an interval */
    LOGP_PARTS = 3, /* of the time of a size: sending, receiving, flood */
    LOGP_END = -1,
};

static const double LOGP_PAUSE_ROUND_TRIPS = 1.2;
static const double LOGP_PAUSE_CLOCKS = 100.0;
static const double LOGP_ACK_PART = 0.01; /* of the time of a flood */

static double logp_budget_us(const struct logp_link *link)
{
    return (double)link->settings->common.time_ms * 1e3 / LOGP_PARTS;
}

/* As many of the wanted samples as there is time for, at least two. */
static long logp_choose_most(const struct logp_link *link,
                             const struct logp_exchange *exchange, int size)
{
    const struct settings_common *common = &link->settings->common;

    if (common->time_ms == 0) {
        return common->iterations;
    }
    (void)logp_run(link, exchange, size, 1, 0); /* connects */
    double pilot_us = logp_run(link, exchange, size, LOGP_PILOT, 0);
    long most = budget_iterations(link->p2p.comm, pilot_us / LOGP_PILOT,
                                  common->iterations, logp_budget_us(link));

    return most > LOGP_LEAST ? most : LOGP_LEAST;
}

/* Sample an exchange until the rule holds for all its series. Gives n. */
static long logp_sample(const struct logp_link *link,
                        const struct logp_exchange *exchange, int size)
{
    struct stats_rule rule = link->rule;
    long most = logp_choose_most(link, exchange, size);
    long n = 0;

    rule.most = (size_t)most;
    (void)logp_run(link, exchange, size,
                   budget_warmup(&link->settings->common, most), 0);
    for (;;) {
        long more = 0;

        for (int s = 0; link->p2p.is_first && s < exchange->series; s++) {
            long wanted =
                (long)stats_more_samples(&rule, link->samples[s], (size_t)n);
            more = wanted > more ? wanted : more;
        }
        more = logp_agree(link, more);
        if (more == 0) {
            return n;
        }
        (void)logp_run(link, exchange, size, more, n);
        n += more;
    }
}

/* On rank 0: summarise n samples of a series. Sorts them. */
static struct logp_estimate logp_estimate(const struct logp_link *link,
                                          int series, long n, bool *precise_p)
{
    double *samples = link->samples[series];
    struct stats_interval interval =
        stats_mean_interval(samples, (size_t)n, link->rule.confidence);
    struct stats_summary summary = stats_summarise(samples, (size_t)n);

    *precise_p = *precise_p && stats_is_precise(&link->rule, interval);
    return (struct logp_estimate){summary.p50, interval.mean, interval.half,
                                  summary.n};
}

/* On rank 0: how many messages the first flood has; few where time is short. */
static long logp_first_flood(const struct logp_link *link,
                             const struct logp_point *point)
{
    double budget_us = logp_budget_us(link);
    double fit = LOGP_FIRST_FLOOD;

    if (budget_us > 0.0) {
        fit = fmin(fit, budget_us / (LOGP_FLOODS * point->rtt.p50));
    }
    return (long)fmax(1.0, fmin(fit, (double)link->settings->flood));
}

/*
 * On rank 0: how many messages the flood after this one has, or 0. It is long
 * enough when it says the same as half of it did, and when the way of its
 * acknowledgement hardly counts.
 */
static long logp_next_flood(const struct logp_link *link,
                            const struct logp_point *point, double ack_us,
                            double spent_us)
{
    double budget_us = logp_budget_us(link);
    double time_us = point->g_flood_us * (double)point->g_flood_n;
    double next_us = 2.0 * LOGP_FLOODS * time_us;
    bool is_steady = fabs(point->g_flood_change) <= link->rule.precision;
    bool is_long = ack_us <= LOGP_ACK_PART * time_us;
    bool has_time = budget_us == 0.0 || spent_us + next_us <= budget_us;
    bool has_room = 2 * point->g_flood_n <= link->settings->flood;

    return (is_steady && is_long) || !has_time || !has_room
               ? 0
               : 2 * point->g_flood_n;
}

/* Several floods of a length, as one that was disturbed says little. */
static double logp_flood_us(const struct logp_link *link, int size, long count,
                            double *spent_us)
{
    const struct logp_exchange *exchange = &LOGP_FLOODING[link->settings->send];
    double times_us[LOGP_FLOODS];

    for (int i = 0; i < LOGP_FLOODS; i++) {
        times_us[i] = logp_run(link, exchange, size, count, 0);
        *spent_us += times_us[i];
    }
    return stats_summarise(times_us, LOGP_FLOODS).p50;
}

static void logp_measure_flood(const struct logp_link *link, double ack_us,
                               struct logp_point *point)
{
    bool leads = link->p2p.is_first;
    long count = logp_agree(link, leads ? logp_first_flood(link, point) : 0);
    double spent_us = 0.0;

    point->g_flood_change = NAN;
    while (count > 0) {
        double time_us =
            logp_flood_us(link, point->size_bytes, count, &spent_us);

        if (leads) {
            double g_us = time_us / (double)count;

            if (point->g_flood_n > 0) {
                point->g_flood_change = g_us / point->g_flood_us - 1.0;
            }
            point->g_flood_us = g_us;
            point->g_flood_n = count;
            count = logp_next_flood(link, point, ack_us, spent_us);
        }
        count = logp_agree(link, count);
    }
}

/* Measure a size, on both sides at once. Only rank 0 gets numbers. */
static void logp_measure_both(struct logp_link *link,
                              const struct logp_point *empty,
                              struct logp_point *point)
{
    const struct logp_settings *settings = link->settings;
    int size = point->size_bytes;
    bool is_precise = true;
    long n = logp_sample(link, &LOGP_SENDING[settings->send], size);

    if (link->p2p.is_first) {
        point->os = logp_estimate(link, 0, n, &is_precise);
        point->rtt = logp_estimate(link, 1, n, &is_precise);
        link->pause_ns =
            (int64_t)(1e3 * fmax(LOGP_PAUSE_ROUND_TRIPS * point->rtt.mean,
                                 LOGP_PAUSE_CLOCKS * link->overhead_us));
    }
    n = logp_sample(link, &LOGP_RECEIVING[settings->receive], size);
    if (link->p2p.is_first) {
        point->or = logp_estimate(link, 0, n, &is_precise);
    }
    logp_measure_flood(link, empty->rtt.p50, point);
    if (link->p2p.is_first) {
        point->is_precise = is_precise;
    }
    point->is_valid =
        !settings->common.validate || p2p_validate(&link->p2p, size);
}

void logp_measure(struct logp_link *link, int size_bytes,
                  const struct logp_point *empty, struct logp_point *point)
{
    *point = (struct logp_point){.size_bytes = size_bytes};
    (void)logp_agree(link, size_bytes);
    logp_measure_both(link, empty, point);
}

void logp_finish(struct logp_link *link)
{
    (void)logp_agree(link, LOGP_END);
}

bool logp_mirror(struct logp_link *link)
{
    bool is_valid = true;

    for (;;) {
        long size = logp_agree(link, 0);

        if (size == LOGP_END) {
            return is_valid;
        }
        struct logp_point point = {.size_bytes = (int)size};
        logp_measure_both(link, &point, &point);
        is_valid = is_valid && point.is_valid;
    }
}

struct logp_estimate logp_gap(const struct logp_point *empty,
                              const struct logp_point *point)
{
    double g0_us = empty->g_flood_us;

    if (point == empty) {
        return (struct logp_estimate){g0_us, g0_us, 0.0, point->rtt.n};
    }
    return (struct logp_estimate){
        .p50 = point->rtt.p50 - empty->rtt.p50 + g0_us,
        .mean = point->rtt.mean - empty->rtt.mean + g0_us,
        .half = hypot(point->rtt.half, empty->rtt.half),
        .n = point->rtt.n,
    };
}

double logp_latency_us(const struct logp_point *empty)
{
    return empty->rtt.p50 / 2.0 - empty->g_flood_us;
}
