/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include "check.h"
#include "clock.h"
#include "transport.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIR_OFFSET_TAG = 11, PAIR_BARRIER_TAG, PAIR_ANSWER_TAG };
enum { PAIR_OFFSET_TRIPS = 20 };

/** The last message from the destination to the source. */
struct pair_answer {
    struct p2p_bandwidth back;
    int64_t start_ns;
    bool valid;
};

/* The settings to allocate for: those of the phase with more iterations. */
static struct settings_common pair_longest(const struct settings *settings)
{
    struct settings_common longest = settings->common;

    if (settings->windows > longest.iterations) {
        longest.iterations = settings->windows;
    }
    return longest;
}

double pair_size_bytes(const struct settings *settings)
{
    struct settings_common longest = pair_longest(settings);

    return p2p_size_bytes(&longest, settings->window, 1.0) +
           transport_size_bytes(settings);
}

static bool pair_is_on(const struct pair_bench *bench)
{
    return bench->p2p.peer != MPI_PROC_NULL;
}

/* From now on the pair is in this phase. */
static void pair_enter(struct pair_bench *bench, enum watchdog_phase phase)
{
    bench->phase = phase;
    if (pair_is_on(bench)) {
        watchdog_watch(phase);
    }
}

static double pair_utc_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The ends of a quiet pair wait for each other only: no watch for others. */
static void pair_wait(struct pair_bench *bench)
{
    const struct p2p *p2p = &bench->p2p;

    if (bench->quiet) {
        CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_CHAR, p2p->peer, PAIR_BARRIER_TAG,
                               NULL, 0, MPI_CHAR, p2p->peer, PAIR_BARRIER_TAG,
                               p2p->comm, MPI_STATUS_IGNORE),
                  "rank %d", p2p->peer);
        return;
    }
    watchdog_wait(WATCHDOG_WAIT_FACTOR);
    CHECK_MPI(MPI_Barrier(p2p->comm), "before a phase");
    watchdog_stop();
}

static void pair_end_leg(struct pair_bench *bench)
{
    bench->leg_us[bench->legs] =
        clock_between_us(bench->leg_ns, clock_now_ns());
    bench->legs++;
}

/* Called before each timed loop. The phase goes on after it. */
static void pair_barrier(void *barrier_context)
{
    struct pair_bench *bench = barrier_context;

    pair_end_leg(bench);
    pair_wait(bench);
    bench->leg_ns = clock_now_ns();
    if (bench->start_ns == 0) {
        bench->start_ns = bench->leg_ns;
        bench->start_time = pair_utc_s();
    }
    pair_enter(bench, bench->phase);
}

void pair_create(struct pair_bench *bench, const struct settings *settings,
                 const struct nodes *nodes, MPI_Comm comm)
{
    size_t size_bytes = (size_t)settings->common.sizes.max;
    struct settings_common longest = pair_longest(settings);

    *bench = (struct pair_bench){
        .settings = settings,
        .nodes = nodes,
        .latency = settings->common,
        .bandwidth = settings->common,
        .send = check_allocate(size_bytes, "messages to send"),
        .receive = check_allocate(size_bytes, "messages to receive"),
    };
    bench->bandwidth.iterations = settings->windows;
    bench->bandwidth.warmup = 1; /* what is connected needs no more */
    bench->p2p = (struct p2p){
        .comm = comm,
        .send = &bench->send,
        .receive = &bench->receive,
        .slots = 1,
        .barrier = pair_barrier,
        .barrier_context = bench,
        .own_budget = true,
    };
    p2p_create(&bench->p2p, &longest, settings->window);
    transport_create(bench);
}

void pair_free(struct pair_bench *bench)
{
    transport_free(bench);
    p2p_free(&bench->p2p);
    free(bench->send);
    free(bench->receive);
}

static int64_t pair_ask_clock(const struct p2p *p2p)
{
    int64_t now_ns = 0;

    CHECK_MPI(
        MPI_Send(NULL, 0, MPI_CHAR, p2p->peer, PAIR_OFFSET_TAG, p2p->comm),
        "to rank %d", p2p->peer);
    CHECK_MPI(MPI_Recv(&now_ns, 1, MPI_INT64_T, p2p->peer, PAIR_OFFSET_TAG,
                       p2p->comm, MPI_STATUS_IGNORE),
              "clock of rank %d", p2p->peer);
    return now_ns;
}

static void pair_tell_clock(const struct p2p *p2p)
{
    CHECK_MPI(MPI_Recv(NULL, 0, MPI_CHAR, p2p->peer, PAIR_OFFSET_TAG, p2p->comm,
                       MPI_STATUS_IGNORE),
              "from rank %d", p2p->peer);
    int64_t now_ns = clock_now_ns();
    CHECK_MPI(MPI_Send(&now_ns, 1, MPI_INT64_T, p2p->peer, PAIR_OFFSET_TAG,
                       p2p->comm),
              "clock to rank %d", p2p->peer);
}

/*
 * Connect. On the source: how far the other's clock is ahead, from the fastest
 * of some round trips, which cannot be wrong by more than half of its time.
 */
static int64_t pair_connect(struct pair_bench *bench, int rail)
{
    const struct p2p *p2p = &bench->p2p;
    int64_t least_ns = INT64_MAX;
    int64_t offset_ns = 0;

    pair_enter(bench, WATCHDOG_CONNECT);
    for (int i = 0; pair_is_on(bench) && i < PAIR_OFFSET_TRIPS; i++) {
        if (!p2p->is_first) {
            pair_tell_clock(p2p);
            continue;
        }
        int64_t start_ns = clock_now_ns();
        int64_t other_ns = pair_ask_clock(p2p);
        int64_t trip_ns = clock_now_ns() - start_ns;

        if (trip_ns < least_ns) {
            least_ns = trip_ns;
            offset_ns = other_ns - (start_ns + trip_ns / 2);
        }
    }
    if (pair_is_on(bench)) {
        transport_connect(bench, rail);
    }
    return offset_ns;
}

/* Bandwidth from the source to the destination, then back. */
static void pair_stream(struct pair_bench *bench, struct pair_result *result,
                        struct pair_answer *answer)
{
    int size = (int)bench->settings->common.sizes.max;
    long window = bench->settings->window;
    bool is_source = bench->p2p.is_first;

    pair_enter(bench, WATCHDOG_BANDWIDTH);
    struct p2p_bandwidth there =
        p2p_stream(&bench->p2p, &bench->bandwidth, window, size);
    pair_enter(bench, WATCHDOG_BANDWIDTH);
    bench->p2p.is_first = !is_source;
    answer->back = p2p_stream(&bench->p2p, &bench->bandwidth, window, size);
    bench->p2p.is_first = is_source;
    result->bw_mb_per_s = there.mb_per_s;
    result->windows = (long)there.windows.n;
}

static bool pair_validate(struct pair_bench *bench)
{
    bool short_is_valid = true;
    bool long_is_valid = true;

    if (bench->settings->common.validate) {
        struct options_span sizes = bench->settings->common.sizes;

        pair_enter(bench, WATCHDOG_VALIDATE);
        short_is_valid = p2p_validate_own(&bench->p2p, (int)sizes.min);
        long_is_valid = p2p_validate_own(&bench->p2p, (int)sizes.max);
    }
    return short_is_valid && long_is_valid;
}

/* Bring together on the source what both ends know. */
static void pair_conclude(struct pair_bench *bench, int64_t offset_ns,
                          struct pair_answer *answer,
                          struct pair_result *result)
{
    const struct p2p *p2p = &bench->p2p;
    bool source_is_valid = answer->valid;

    if (!p2p->is_first) {
        CHECK_MPI(MPI_Send(answer, sizeof(*answer), MPI_BYTE, p2p->peer,
                           PAIR_ANSWER_TAG, p2p->comm),
                  "result to rank %d", p2p->peer);
        return;
    }
    CHECK_MPI(MPI_Recv(answer, sizeof(*answer), MPI_BYTE, p2p->peer,
                       PAIR_ANSWER_TAG, p2p->comm, MPI_STATUS_IGNORE),
              "result of rank %d", p2p->peer);
    long back = (long)answer->back.windows.n;
    result->windows = back < result->windows ? back : result->windows;
    result->bw_back_mb_per_s = answer->back.mb_per_s;
    result->start_time = bench->start_time;
    result->start_spread_us =
        fabs(clock_between_us(bench->start_ns + offset_ns, answer->start_ns));
    result->valid = source_is_valid && answer->valid;
}

static void pair_meet(struct pair_bench *bench,
                      const struct pair_meeting *meeting)
{
    const struct nodes *nodes = bench->nodes;

    bench->quiet = meeting->quiet;
    bench->legs = 0;
    bench->leg_ns = clock_now_ns();
    bench->start_ns = 0;
    bench->p2p.peer = MPI_PROC_NULL;
    bench->p2p.is_first = false;
    watchdog_name_round(meeting->round);
    if (meeting->source < 0) {
        return;
    }
    bench->p2p.is_first = meeting->source == nodes->own;
    bench->p2p.peer =
        bench->p2p.is_first ? meeting->destination : meeting->source;
    watchdog_name_pair(nodes->hosts[meeting->source],
                       nodes->hosts[meeting->destination], meeting->rail,
                       meeting->round);
}

struct pair_result pair_measure(struct pair_bench *bench,
                                const struct pair_meeting *meeting)
{
    struct pair_result result = {.meeting = *meeting};
    struct pair_answer answer = {.valid = true};

    pair_meet(bench, meeting);
    int64_t offset_ns = pair_connect(bench, meeting->rail);
    pair_enter(bench, WATCHDOG_LATENCY);
    result.latency_us = p2p_latency(&bench->p2p, &bench->latency,
                                    (int)bench->settings->common.sizes.min);
    pair_barrier(bench); /* no bandwidth while other pairs time latency */
    pair_stream(bench, &result, &answer);
    answer.valid = pair_validate(bench);
    answer.start_ns = bench->start_ns;
    if (pair_is_on(bench)) {
        pair_conclude(bench, offset_ns, &answer, &result);
        transport_disconnect(bench);
    }
    watchdog_stop();
    pair_end_leg(bench);
    memcpy(result.leg_us, bench->leg_us, sizeof(result.leg_us));
    return result;
}
