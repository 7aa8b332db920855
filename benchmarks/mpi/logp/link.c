/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include "check.h"
#include "clock.h"

#include <math.h>
#include <stdlib.h>

enum {
    LOGP_TAG = 1,
    LOGP_ANSWER_TAG = 2,
    LOGP_WINDOW = 64, /* messages of a flood on the way at once */
};

static void logp_send(const struct logp_link *link, int size, int tag)
{
    CHECK_MPI(MPI_Send(link->send, size, MPI_CHAR, link->p2p.peer, tag,
                       link->p2p.comm),
              "%d bytes to rank %d", size, link->p2p.peer);
}

static void logp_receive(const struct logp_link *link, int size, int tag)
{
    CHECK_MPI(MPI_Recv(link->receive, size, MPI_CHAR, link->p2p.peer, tag,
                       link->p2p.comm, MPI_STATUS_IGNORE),
              "%d bytes from rank %d", size, link->p2p.peer);
}

static void logp_isend(const struct logp_link *link, int size,
                       MPI_Request *request)
{
    CHECK_MPI(MPI_Isend(link->send, size, MPI_CHAR, link->p2p.peer, LOGP_TAG,
                        link->p2p.comm, request),
              "%d bytes to rank %d", size, link->p2p.peer);
}

static void logp_wait(const struct logp_link *link, int count,
                      MPI_Request *requests)
{
    CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE),
              "%d messages, rank %d", count, link->p2p.peer);
}

/* Wait without a call of MPI. */
static void logp_pause(int64_t pause_ns)
{
    int64_t end_ns = clock_now_ns() + pause_ns;

    while (clock_now_ns() < end_ns) {
    }
}

/* The delay is only there to try the method, and costs nothing without. */
static void logp_answer(const struct logp_link *link, int size)
{
    if (link->delay_ns > 0) {
        logp_pause(link->delay_ns);
    }
    logp_send(link, size, LOGP_ANSWER_TAG);
}

/* Take off what reading the clock cost: the shortest times are hardly more. */
static double logp_time_us(const struct logp_link *link, int64_t start_ns,
                           int64_t end_ns, int readings)
{
    double time_us = clock_between_us(start_ns, end_ns);

    return fmax(time_us - readings * link->overhead_us, 0.0);
}

static void logp_keep_round_trip(const struct logp_link *link, long place,
                                 int64_t start_ns, int64_t sent_ns,
                                 int64_t end_ns)
{
    link->samples[0][place] = logp_time_us(link, start_ns, sent_ns, 1);
    link->samples[1][place] = logp_time_us(link, start_ns, end_ns, 2);
}

static void logp_isend_loop(const struct logp_link *link, int size, long count,
                            long first)
{
    MPI_Request request;

    for (long i = first; i < first + count; i++) {
        int64_t start_ns = clock_now_ns();
        logp_isend(link, size, &request);
        int64_t sent_ns = clock_now_ns();
        logp_wait(link, 1, &request);
        logp_receive(link, 0, LOGP_ANSWER_TAG);
        logp_keep_round_trip(link, i, start_ns, sent_ns, clock_now_ns());
    }
}

static void logp_send_loop(const struct logp_link *link, int size, long count,
                           long first)
{
    for (long i = first; i < first + count; i++) {
        int64_t start_ns = clock_now_ns();
        logp_send(link, size, LOGP_TAG);
        int64_t sent_ns = clock_now_ns();
        logp_receive(link, 0, LOGP_ANSWER_TAG);
        logp_keep_round_trip(link, i, start_ns, sent_ns, clock_now_ns());
    }
}

static void logp_send_mirror(const struct logp_link *link, int size, long count,
                             long first)
{
    (void)first;
    for (long i = 0; i < count; i++) {
        logp_receive(link, size, LOGP_TAG);
        logp_answer(link, 0);
    }
}

static void logp_recv_loop(const struct logp_link *link, int size, long count,
                           long first)
{
    for (long i = first; i < first + count; i++) {
        logp_send(link, 0, LOGP_TAG);
        logp_pause(link->pause_ns);
        int64_t start_ns = clock_now_ns();
        logp_receive(link, size, LOGP_ANSWER_TAG);
        link->samples[0][i] = logp_time_us(link, start_ns, clock_now_ns(), 1);
    }
}

static void logp_irecv_loop(const struct logp_link *link, int size, long count,
                            long first)
{
    MPI_Request request;

    for (long i = first; i < first + count; i++) {
        CHECK_MPI(MPI_Irecv(link->receive, size, MPI_CHAR, link->p2p.peer,
                            LOGP_ANSWER_TAG, link->p2p.comm, &request),
                  "%d bytes from rank %d", size, link->p2p.peer);
        logp_send(link, 0, LOGP_TAG);
        logp_pause(link->pause_ns);
        int64_t start_ns = clock_now_ns();
        logp_wait(link, 1, &request);
        link->samples[0][i] = logp_time_us(link, start_ns, clock_now_ns(), 1);
    }
}

static void logp_receive_mirror(const struct logp_link *link, int size,
                                long count, long first)
{
    (void)first;
    for (long i = 0; i < count; i++) {
        logp_receive(link, 0, LOGP_TAG);
        logp_answer(link, size);
    }
}

static void logp_isend_flood(const struct logp_link *link, int size, long count,
                             long first)
{
    (void)first;
    while (count > 0) {
        int window = count < LOGP_WINDOW ? (int)count : LOGP_WINDOW;

        for (int i = 0; i < window; i++) {
            logp_isend(link, size, &link->requests[i]);
        }
        logp_wait(link, window, link->requests);
        count -= window;
    }
    logp_receive(link, 0, LOGP_ANSWER_TAG);
}

static void logp_send_flood(const struct logp_link *link, int size, long count,
                            long first)
{
    (void)first;
    for (long i = 0; i < count; i++) {
        logp_send(link, size, LOGP_TAG);
    }
    logp_receive(link, 0, LOGP_ANSWER_TAG);
}

static void logp_flood_mirror(const struct logp_link *link, int size,
                              long count, long first)
{
    (void)first;
    for (long i = 0; i < count; i++) {
        logp_receive(link, size, LOGP_TAG);
    }
    logp_answer(link, 0);
}

const char *const LOGP_SENDS[] = {"isend", "send", NULL};
const char *const LOGP_RECEIVES[] = {"recv", "irecv", NULL};

const struct logp_exchange LOGP_SENDING[] = {
    {logp_isend_loop, logp_send_mirror, 2},
    {logp_send_loop, logp_send_mirror, 2},
};
const struct logp_exchange LOGP_RECEIVING[] = {
    {logp_recv_loop, logp_receive_mirror, 1},
    {logp_irecv_loop, logp_receive_mirror, 1},
};
const struct logp_exchange LOGP_FLOODING[] = {
    {logp_isend_flood, logp_flood_mirror, 0},
    {logp_send_flood, logp_flood_mirror, 0},
};

long logp_agree(const struct logp_link *link, long value)
{
    CHECK_MPI(MPI_Bcast(&value, 1, MPI_LONG, 0, link->p2p.comm),
              "what rank 0 decided");
    return value;
}

double logp_run(const struct logp_link *link,
                const struct logp_exchange *exchange, int size, long count,
                long first)
{
    logp_loop loop = link->p2p.is_first ? exchange->lead : exchange->mirror;

    CHECK_MPI(MPI_Barrier(link->p2p.comm), "%ld times %d bytes", count, size);
    int64_t start_ns = clock_now_ns();
    loop(link, size, count, first);
    return clock_between_us(start_ns, clock_now_ns());
}

/* Warm-up leaves its times where samples come later. */
static size_t logp_room(const struct settings_common *common)
{
    long room = common->iterations > common->warmup ? common->iterations
                                                    : common->warmup;

    return (size_t)room + LOGP_PILOT;
}

double logp_link_size_bytes(const struct logp_settings *settings)
{
    return 2.0 * (double)settings->common.sizes.max +
           2.0 * (double)logp_room(&settings->common) * sizeof(double);
}

void logp_link_create(MPI_Comm comm, const struct logp_settings *settings,
                      struct logp_link *link)
{
    size_t largest = (size_t)settings->common.sizes.max;
    size_t room = logp_room(&settings->common);
    int rank = 0;

    CHECK_MPI(MPI_Comm_rank(comm, &rank), "a pair");
    *link = (struct logp_link){
        .settings = settings,
        .rule = {.least = (size_t)settings->least,
                 .confidence = (double)settings->confidence_percent / 100.0,
                 .precision = (double)settings->eps_percent / 100.0},
        .send = check_allocate(largest, "messages to send"),
        .receive = check_allocate(largest, "messages to receive"),
        .requests = check_allocate(LOGP_WINDOW * sizeof(MPI_Request),
                                   "requests of a flood"),
        .overhead_us = clock_overhead_ns() / 1e3,
        .delay_ns = settings->delay_us * 1000,
    };
    for (int s = 0; s < 2; s++) {
        link->samples[s] = check_allocate(room * sizeof(double), "samples");
    }
    link->p2p = (struct p2p){.comm = comm,
                             .peer = 1 - rank,
                             .is_first = rank == 0,
                             .send = &link->send,
                             .receive = &link->receive,
                             .slots = 1};
}

void logp_link_free(struct logp_link *link)
{
    free(link->send);
    free(link->receive);
    free(link->requests);
    free(link->samples[0]);
    free(link->samples[1]);
}
