/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the cost of every posted receive that a message must pass. */
#include "mq.h"

static const char PURPOSE[] =
    "Latency of a ping-pong between two ranks behind a queue of posted "
    "receives.\nBoth ranks have posted as many receives as the queue is deep, "
    "of messages that\ncome only when all is measured; an arriving message of "
    "the ping-pong must pass\nthem to find its own receive. Latency is half "
    "the round trip.";

static const struct mq_settings DEFAULTS = {
    .common = {.sizes = {.min = 8, .max = 8},
               .iterations = 1000,
               .warmup = 100},
    .depth = {.min = 0, .max = 8192},
    .entry_bytes = 8,
    .tags = MQ_TAGS_SAME,
};

static void empty(const struct mq_queue *queue)
{
    mq_start_sends(queue);
    mq_finish_sends(queue);
    mq_finish_receives(queue);
}

static enum check_exit run(const struct program *program, const void *settings)
{
    const struct mq_kind kind = {program, mq_start_receives, empty};

    return mq_run(&kind, settings);
}

int main(int argc, char **argv)
{
    static const struct program MQ_POSTED = {
        .name = "mq_posted",
        .purpose = PURPOSE,
        .options = MQ_OPTIONS,
        .defaults = &DEFAULTS,
        .settings_size = sizeof(struct mq_settings),
        .verify = mq_verify,
        .run = run,
    };

    return program_main(&MQ_POSTED, argc, argv);
}
