/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the cost of every unexpected message that a receive must pass. */
#include "check.h"
#include "clock.h"
#include "mq.h"

static const char PURPOSE[] =
    "Latency of a ping-pong between two ranks behind a queue of unexpected "
    "messages.\nBoth ranks have as many messages waiting as the queue is deep, "
    "which are received\nonly when all is measured; every receive of the "
    "ping-pong must pass them to find\nthat its own message is not there yet. "
    "Latency is half the round trip.";

/* Waiting longer means that MPI keeps the messages back at the sender. */
enum { LONGEST_WAIT_S = 60 };

static const struct mq_settings DEFAULTS = {
    .common = {.sizes = {.min = 8, .max = 8},
               .iterations = 1000,
               .warmup = 100},
    .depth = {.min = 0, .max = 8192},
    .entry_bytes = 8,
    .tags = MQ_TAGS_ORDERED,
};

/* All are sent, and the last one, which is the last to come, is here. */
static bool is_filled(const struct mq_queue *queue)
{
    int sent = 0;
    int here = 0;

    CHECK_MPI(
        MPI_Testall(queue->depth, queue->sends, &sent, MPI_STATUSES_IGNORE),
        "%d entries to rank %d", queue->depth, queue->peer);
    CHECK_MPI(MPI_Iprobe(queue->peer, MQ_LAST_TAG, queue->comm, &here,
                         MPI_STATUS_IGNORE),
              "last entry from rank %d", queue->peer);
    return sent != 0 && (here != 0 || queue->depth == 0);
}

static void fill(const struct mq_queue *queue)
{
    int64_t start_ns = clock_now_ns();

    mq_start_sends(queue);
    while (!is_filled(queue)) {
        if (clock_between_us(start_ns, clock_now_ns()) > LONGEST_WAIT_S * 1e6) {
            check_abort(CHECK_FAILED,
                        "%d unexpected messages of %d bytes between rank %d "
                        "and this one are not through in %d s: choose a "
                        "smaller --entry-size or --depth",
                        queue->depth, queue->entry_bytes, queue->peer,
                        LONGEST_WAIT_S);
        }
    }
}

static void empty(const struct mq_queue *queue)
{
    mq_start_receives(queue);
    mq_finish_receives(queue);
}

static enum check_exit run(const struct program *program, const void *settings)
{
    const struct mq_kind kind = {program, fill, empty};

    return mq_run(&kind, settings);
}

int main(int argc, char **argv)
{
    static const struct program MQ_UNEXP = {
        .name = "mq_unexp",
        .purpose = PURPOSE,
        .options = MQ_OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct mq_settings),
        .verify = mq_verify,
        .run = run,
    };

    return program_main(&MQ_UNEXP, argc, argv);
}
