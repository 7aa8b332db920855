/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <arpa/inet.h>

/* What an immediate value says. */
enum { WINDOW_DATA = 1, WINDOW_REPLY = 2 };

/* The prepared requests of a sender. */
struct window_requests {
    struct link_request writes[STRIPES_MOST];
    struct link_request tells[STRIPES_MOST]; /* after each piece, or the last */
    struct link_request replies[STRIPES_MOST];
};

void window_post_receives(const struct link *links, int rails)
{
    for (int r = 0; r < rails; r++) {
        for (int i = 0; i < links[r].plan.receive_depth; i++) {
            link_post_receive(&links[r], 0, 0, 0);
        }
    }
}

static void window_prepare(const struct window *window,
                           struct window_requests *requests)
{
    const struct stripes *own = &window->own;

    for (int s = 0; s < own->count; s++) {
        const struct stripe *piece = &own->pieces[s];
        const struct link *link = &window->links[piece->rail];
        size_t from = window->send + piece->offset;
        size_t to = window->receive + piece->offset;

        link_prepare(link, &requests->writes[s], IBV_WR_RDMA_WRITE, from, to,
                     piece->size_bytes);
        requests->writes[s].wr.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
        if (own->count > 1) {
            link_prepare(link, &requests->tells[s], IBV_WR_SEND_WITH_IMM, 0, 0,
                         0);
        } else {
            link_prepare(link, &requests->tells[s], IBV_WR_RDMA_WRITE_WITH_IMM,
                         from, to, piece->size_bytes);
        }
        requests->tells[s].wr.imm_data = htonl(WINDOW_DATA);
    }
    for (int r = 0; r < window->rails; r++) {
        link_prepare(&window->links[r], &requests->replies[r],
                     IBV_WR_SEND_WITH_IMM, 0, 0, 0);
        requests->replies[r].wr.imm_data = htonl(WINDOW_REPLY);
    }
}

/* Post a window; the last request of each rail has a completion. */
static void window_post(const struct window *window,
                        struct window_requests *requests)
{
    const struct stripes *own = &window->own;
    bool is_cut = own->count > 1;
    long writes = window->messages - (is_cut ? 0 : 1);

    for (long w = 0; w < writes; w++) {
        for (int s = 0; s < own->count; s++) {
            const struct link *link = &window->links[own->pieces[s].rail];

            link_post(link, 0, &requests->writes[s]);
            if (is_cut) {
                unsigned flags = w + 1 < writes ? 0 : IBV_SEND_SIGNALED;

                requests->tells[s].wr.send_flags = flags;
                link_post(link, 0, &requests->tells[s]);
            }
        }
    }
    if (!is_cut) {
        link_post(&window->links[own->pieces[0].rail], 0, &requests->tells[0]);
    }
}

/* Take what has come by all rails; return whether anything has. */
static bool window_poll(const struct window *window)
{
    bool any = false;

    for (int r = 0; r < window->rails; r++) {
        struct ibv_wc wc;

        if (!link_poll(&window->links[r], &wc)) {
            continue;
        }
        any = true;
        if ((wc.opcode & IBV_WC_RECV) == 0) {
            window->tally->sent++;
            continue;
        }
        if (wc.imm_data == htonl(WINDOW_DATA)) {
            window->tally->data++;
        } else {
            window->tally->replies++;
        }
        link_post_receive(&window->links[r], 0, 0, 0);
    }
    return any;
}

static bool window_has(const struct window_tally *tally,
                       const struct window_tally *needed)
{
    return tally->sent >= needed->sent && tally->data >= needed->data &&
           tally->replies >= needed->replies;
}

/* Wait for all that belongs to a window, and reply to what came. */
static void window_finish(const struct window *window,
                          struct window_requests *requests)
{
    struct window_tally *tally = window->tally;
    bool owes_reply = window->receives;
    struct window_tally needed = {
        .sent = (window->sends ? window->own.count : 0) +
                (window->receives ? 1 : 0),
        .data = !window->receives        ? 0
                : window->peer.count > 1 ? window->messages * window->peer.count
                                         : 1,
        .replies = window->sends ? 1 : 0,
    };
    struct watch_spin spin = {0};

    while (!window_has(tally, &needed)) {
        if (owes_reply && tally->data >= needed.data) {
            int rail = window->peer.pieces[0].rail;

            link_post(&window->links[rail], 0, &requests->replies[rail]);
            owes_reply = false;
        }
        if (window_poll(window)) {
            spin = (struct watch_spin){0};
        } else if (!watch_spin(&spin, window->links[0].settings->timeout_s)) {
            link_timed_out(&window->links[0], "the end of a window");
        }
    }
    tally->sent -= needed.sent;
    tally->data -= needed.data;
    tally->replies -= needed.replies;
}

void window_loop(const struct window *window, long n, int64_t *stamps_ns)
{
    struct window_requests requests;

    window_prepare(window, &requests);
    stamps_ns[0] = clock_now_ns();
    for (long i = 0; i < n; i++) {
        if (window->sends) {
            window_post(window, &requests);
        }
        window_finish(window, &requests);
        stamps_ns[i + 1] = clock_now_ns();
    }
}
