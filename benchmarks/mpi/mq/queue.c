/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "mq.h"
#include "payload.h"

#include <stdlib.h>

const char *const MQ_TAGS[] = {"same", "ordered", "random", NULL};

double mq_queue_size_bytes(const struct mq_settings *settings)
{
    double entry_bytes = 2.0 * (double)settings->entry_bytes +
                         2.0 * sizeof(MPI_Request) + sizeof(int);

    return (double)settings->depth.max * entry_bytes;
}

/* Tags 0, 1, 2, ... after the first, or the same in random order (Fisher and
 * Yates), on both ranks alike.
 */
static void mq_choose_tags(size_t kind, long count, int *tags)
{
    for (long i = 0; i < count; i++) {
        tags[i] = MQ_FIRST_TAG + (kind == MQ_TAGS_SAME ? 0 : (int)i);
    }
    for (long i = count - 1; kind == MQ_TAGS_RANDOM && i > 0; i--) {
        long other = (long)(payload_mix((uint64_t)i) % ((uint64_t)i + 1));
        int tag = tags[i];

        tags[i] = tags[other];
        tags[other] = tag;
    }
}

void mq_queue_create(const struct mq_settings *settings, struct mq_queue *queue)
{
    size_t entries = (size_t)settings->depth.max;
    size_t entry_bytes = (size_t)settings->entry_bytes;
    size_t request_bytes = entries * sizeof(MPI_Request);

    *queue = (struct mq_queue){
        .comm = MPI_COMM_WORLD,
        .entry_bytes = (int)entry_bytes,
        .tags = check_allocate(entries * sizeof(int), "tags"),
        .sent = check_allocate(entries * entry_bytes, "entries to send"),
        .received = check_allocate(entries * entry_bytes, "received entries"),
        .sends = check_allocate(request_bytes, "requests"),
        .receives = check_allocate(request_bytes, "requests"),
    };
    mq_choose_tags(settings->tags, settings->depth.max, queue->tags);
    CHECK_MPI(MPI_Comm_dup(queue->comm, &queue->control), "barriers");
    CHECK_MPI(MPI_Comm_rank(queue->comm, &queue->rank), "queue");
    queue->peer = 1 - queue->rank;
}

void mq_queue_free(struct mq_queue *queue)
{
    CHECK_MPI(MPI_Comm_free(&queue->control), "barriers");
    free(queue->tags);
    free(queue->sent);
    free(queue->received);
    free(queue->sends);
    free(queue->receives);
}

static char *mq_entry(const struct mq_queue *queue, char *entries, int i)
{
    return entries + (size_t)i * (size_t)queue->entry_bytes;
}

static int mq_tag(const struct mq_queue *queue, int i)
{
    return i + 1 == queue->depth ? MQ_LAST_TAG : queue->tags[i];
}

void mq_start_sends(const struct mq_queue *queue)
{
    for (int i = 0; i < queue->depth; i++) {
        CHECK_MPI(MPI_Isend(mq_entry(queue, queue->sent, i), queue->entry_bytes,
                            MPI_CHAR, queue->peer, mq_tag(queue, i),
                            queue->comm, &queue->sends[i]),
                  "entry %d to rank %d", i, queue->peer);
    }
}

void mq_start_receives(const struct mq_queue *queue)
{
    for (int i = 0; i < queue->depth; i++) {
        CHECK_MPI(MPI_Irecv(mq_entry(queue, queue->received, i),
                            queue->entry_bytes, MPI_CHAR, queue->peer,
                            mq_tag(queue, i), queue->comm, &queue->receives[i]),
                  "entry %d from rank %d", i, queue->peer);
    }
}

void mq_finish_sends(const struct mq_queue *queue)
{
    CHECK_MPI(MPI_Waitall(queue->depth, queue->sends, MPI_STATUSES_IGNORE),
              "%d entries to rank %d", queue->depth, queue->peer);
}

void mq_finish_receives(const struct mq_queue *queue)
{
    CHECK_MPI(MPI_Waitall(queue->depth, queue->receives, MPI_STATUSES_IGNORE),
              "%d entries from rank %d", queue->depth, queue->peer);
}

void mq_prepare(const struct mq_queue *queue)
{
    size_t bytes = (size_t)queue->entry_bytes;

    for (int i = 0; i < queue->depth; i++) {
        payload_fill(mq_entry(queue, queue->sent, i), bytes,
                     payload_key(queue->rank, i));
        payload_fill(mq_entry(queue, queue->received, i), bytes,
                     payload_key(-1, i));
    }
}

bool mq_check(const struct mq_queue *queue)
{
    int valid = 1;

    for (int i = 0; i < queue->depth && valid != 0; i++) {
        valid = payload_check(mq_entry(queue, queue->received, i),
                              (size_t)queue->entry_bytes,
                              payload_key(queue->peer, i), queue->peer);
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_MIN,
                            queue->control),
              "contents of %d entries", queue->depth);
    return valid != 0;
}
