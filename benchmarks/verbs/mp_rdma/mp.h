/* SPDX-License-Identifier: Apache-2.0 */
/* What mp_rdma_lat and mp_rdma_bw share. */
#ifndef SEATRIAL_MP_H
#define SEATRIAL_MP_H

#include "node_barrier.h"
#include "placement.h"
#include "program.h"
#include "settings.h"
#include "stats.h"
#include "team.h"

/** RDMA operations, in the order of their rows. */
enum mp_operation { MP_WRITE, MP_READ, MP_OPERATIONS };

struct mp_settings {
    struct settings_common common;
    struct verbs_settings verbs;
    struct options_span pairs; /* max 0: all */
    size_t operation;          /* enum mp_operation, or all */
    long window;
    long spread_limit_ns;
    long pretend_ppn;
};

extern const char *const MP_OPERATION_NAMES[];

enum { MP_MAX_PAIRS = 65536, MP_MAX_SPREAD_NS = 1000000000 };

/** The rows of options of both programs. */
#define MP_OPTION_ROWS(timed, untimed)                                         \
    VERBS_DEVICE_ROW(struct mp_settings,                                       \
                     "adapter and port; none: the first active one"),          \
        VERBS_CONNECTION_ROWS(struct mp_settings),                             \
        SETTINGS_ROW("operation", 0, OPTIONS_CHOICE,                           \
                     offsetof(struct mp_settings, operation), 0, 0,            \
                     MP_OPERATION_NAMES, "NAME", "what is measured"),          \
        SETTINGS_ROW("pairs", 'p', OPTIONS_SPAN,                               \
                     offsetof(struct mp_settings, pairs), 0, MP_MAX_PAIRS,     \
                     NULL, "[MIN:]MAX",                                        \
                     "pairs from MIN, doubled, and MAX; MAX 0: all"),          \
        SETTINGS_ROW("spread-limit", 0, OPTIONS_INTEGER,                       \
                     offsetof(struct mp_settings, spread_limit_ns), 0,         \
                     MP_MAX_SPREAD_NS, NULL, "NS",                             \
                     "drop operations whose ranks began further apart; 0: "    \
                     "none"),                                                  \
        SETTINGS_SIZE_ROWS(struct mp_settings, SETTINGS_MAX_SIZE, "BYTES",     \
                           "message"),                                         \
        VERBS_FACTOR_ROW(struct mp_settings),                                  \
        SETTINGS_LOOP_ROWS(struct mp_settings, timed, untimed),                \
        PLACEMENT_OPTION_ROW(struct mp_settings),                              \
        SETTINGS_LAST_ROWS(struct mp_settings)

/** An operation of all pairs, of one size. */
struct mp_work {
    enum mp_operation operation;
    size_t size_bytes;
    int pairs;
};

struct mp_run;

/**
 * The timed loop of a rank on the first node: left_ns[i] is when it left the
 * barrier before operation i, end_ns[i] the end of that.
 */
typedef void (*mp_loop)(const struct mp_run *run, const struct mp_work *work,
                        long n);

/** The numbers of a row, on rank 0. */
struct mp_result {
    struct stats_summary times; /* us, of the operations kept; n 0: of none */
    size_t made;                /* operations */
    size_t dropped;
    struct stats_summary spread_ns;
    double interval_us;    /* from the first begin to the last end */
    double *mean_us;       /* pairs: the mean operation of each */
    struct link_plan plan; /* what the pairs had */
};

/** How a program differs from the other one. */
struct mp_kind {
    mp_loop first;  /* of the ranks on the first node */
    mp_loop second; /* of the others */
    bool is_half;   /* writes count half, less a reading of the clock */
    void (*add)(struct report_row *row, const struct mp_settings *settings,
                const struct mp_work *work, const struct mp_result *result);
};

/** A run on one rank. */
struct mp_run {
    const struct program *program;
    const struct mp_settings *settings;
    const struct mp_kind *kind;
    const struct placement *placement;
    struct team team;
    struct link link;
    struct node_barrier barrier; /* of the ranks on the first node */
    size_t send;                 /* offsets in the link's memory */
    size_t receive;
    int most_pairs;
    double clock_us; /* what one reading of the clock costs */
    int64_t *left_ns;
    int64_t *end_ns;
    double *samples; /* of all pairs, on rank 0 */
};

/** Wait for the other measuring ranks of the node and stamp the end of that. */
static inline int64_t mp_begin(const struct mp_run *run,
                               const struct mp_work *work)
{
    if (!node_barrier_wait(&run->barrier, (unsigned)work->pairs,
                           run->settings->verbs.timeout_s)) {
        link_timed_out(&run->link, "the other ranks of this node");
    }
    return clock_now_ns();
}

/** Refuse contradictions; watch the start: members of struct program. */
bool mp_verify(const void *settings, char error[OPTIONS_ERROR_SIZE]);
void mp_prepare(const void *settings);

/** Run all rows of a kind. */
enum check_exit mp_run(const struct program *program,
                       const struct mp_settings *settings,
                       const struct mp_kind *kind);

/** The communicators of a number of pairs. */
struct mp_comms {
    MPI_Comm active; /* the ranks of the pairs; MPI_COMM_NULL: not in it */
    MPI_Comm firsts; /* those of them on the first node */
};

/** Create them, and free them; all ranks call. */
void mp_join(const struct mp_run *run, int pairs, struct mp_comms *comms);
void mp_leave(struct mp_comms *comms);

/** Measure one row; all ranks call, rank 0 has the result. */
struct mp_result mp_measure(const struct mp_run *run,
                            const struct mp_work *work,
                            const struct mp_comms *comms);

/** Verify contents of all pairs; all ranks call and are told. */
bool mp_validate(const struct mp_run *run, const struct mp_work *work);

#endif
