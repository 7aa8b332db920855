/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three victims of GPCNeT (Chunduri et al. 2019; random_ring.c,
 * collectives.c): in random rings each rank exchanges messages with both
 * neighbours at once, and groups of ranks reduce a number. The 99th
 * percentile is that of times; of a bandwidth it is what 99 % of the samples
 * reach.
 */
#include "victims.h"

#include "budget.h"
#include "check.h"
#include "clock.h"
#include "payload.h"
#include "quantile.h"
#include "roles.h"

#include <stdlib.h>

enum { PILOT = 3, TO_LEFT = 1, TO_RIGHT = 2, LEFT = 0, RIGHT = 1 };

/** One timed loop; stamps_ns[0] is its start, the others the ends. */
typedef void (*victims_loop)(const struct victims *victims, long count);

/* Post receives from both neighbours, and send to them. */
static void exchange(const struct victims *victims, int size, long window)
{
    MPI_Request *next = victims->requests;

    for (long i = 0; i < window; i++) {
        CHECK_MPI(MPI_Irecv(victims->receive[LEFT], size, MPI_BYTE,
                            victims->left, TO_RIGHT, victims->slice, next++),
                  "from rank %d", victims->left);
        CHECK_MPI(MPI_Irecv(victims->receive[RIGHT], size, MPI_BYTE,
                            victims->right, TO_LEFT, victims->slice, next++),
                  "from rank %d", victims->right);
    }
    for (long i = 0; i < window; i++) {
        CHECK_MPI(MPI_Isend(victims->send[LEFT], size, MPI_BYTE, victims->left,
                            TO_LEFT, victims->slice, next++),
                  "to rank %d", victims->left);
        CHECK_MPI(MPI_Isend(victims->send[RIGHT], size, MPI_BYTE,
                            victims->right, TO_RIGHT, victims->slice, next++),
                  "to rank %d", victims->right);
    }
    CHECK_MPI(MPI_Waitall((int)(next - victims->requests), victims->requests,
                          MPI_STATUSES_IGNORE),
              "%ld messages from and to both neighbours", window);
}

static void loop_latency(const struct victims *victims, long count)
{
    int size = victims_size_bytes(VICTIM_LATENCY);

    victims->stamps_ns[0] = clock_now_ns();
    for (long i = 1; i <= count; i++) {
        exchange(victims, size, 1);
        victims->stamps_ns[i] = clock_now_ns();
    }
}

static void loop_bandwidth(const struct victims *victims, long count)
{
    int size = victims_size_bytes(VICTIM_BANDWIDTH);
    long window = victims->work->window;

    victims->stamps_ns[0] = clock_now_ns();
    for (long i = 1; i <= count; i++) {
        exchange(victims, size, window);
        CHECK_MPI(MPI_Barrier(victims->slice), "end of a window");
        victims->stamps_ns[i] = clock_now_ns();
    }
}

static void loop_allreduce(const struct victims *victims, long count)
{
    double number = 1.0;
    double sum = 0.0;

    victims->stamps_ns[0] = clock_now_ns();
    for (long i = 1; i <= count; i++) {
        CHECK_MPI(MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM,
                                victims->slice),
                  "a number");
        victims->stamps_ns[i] = clock_now_ns();
    }
}

static const struct {
    victims_loop loop;
    int size_bytes;
    double parts; /* messages one after the other in a sample */
} VICTIMS[VICTIM_KINDS] = {
    [VICTIM_LATENCY] = {loop_latency, 8, 2.0},
    [VICTIM_BANDWIDTH] = {loop_bandwidth, 131072, 1.0},
    [VICTIM_ALLREDUCE] = {loop_allreduce, 8, 1.0},
};

int victims_size_bytes(enum victim victim)
{
    return VICTIMS[victim].size_bytes;
}

static long longest_loop(const struct victims_work *work)
{
    long longest = work->common->iterations > work->windows
                       ? work->common->iterations
                       : work->windows;

    longest = work->common->warmup > longest ? work->common->warmup : longest;
    return longest > PILOT ? longest : PILOT;
}

double victims_bytes(const struct victims_work *work)
{
    double longest = (double)longest_loop(work);

    return 4.0 * VICTIMS[VICTIM_BANDWIDTH].size_bytes +
           sizeof(double) * longest * ((double)work->rings + 1.0) +
           4.0 * (double)work->window * sizeof(MPI_Request);
}

void victims_create(const struct victims_work *work, MPI_Comm side,
                    MPI_Comm slice, struct victims *victims)
{
    size_t size = (size_t)VICTIMS[VICTIM_BANDWIDTH].size_bytes;
    size_t longest = (size_t)longest_loop(work);

    *victims = (struct victims){.work = work, .side = side, .slice = slice};
    CHECK_MPI(MPI_Comm_rank(slice, &victims->rank), "a ring");
    CHECK_MPI(MPI_Comm_size(slice, &victims->ranks), "a ring");
    for (int i = 0; i < 2; i++) {
        victims->send[i] = check_allocate(size, "messages");
        victims->receive[i] = check_allocate(size, "messages");
    }
    victims->requests = check_allocate(
        4 * (size_t)work->window * sizeof(MPI_Request), "requests");
    victims->stamps_ns =
        check_allocate((longest + 1) * sizeof(int64_t), "stamps");
    victims->samples_us = check_allocate(
        longest * (size_t)work->rings * sizeof(double), "samples");
}

void victims_free(struct victims *victims)
{
    for (int i = 0; i < 2; i++) {
        free(victims->send[i]);
        free(victims->receive[i]);
    }
    free(victims->requests);
    free(victims->stamps_ns);
    free(victims->samples_us);
}

/* The neighbours in a ring of chance; its number makes it another one. */
static void choose_ring(struct victims *victims, long ring)
{
    int count = victims->ranks;
    int *order = check_allocate((size_t)count * sizeof(*order), "a ring");
    int place = 0;

    roles_shuffle(order, count,
                  payload_mix(victims->work->seed) ^ (uint64_t)ring);
    while (order[place] != victims->rank) {
        place++;
    }
    victims->left = order[(place + count - 1) % count];
    victims->right = order[(place + 1) % count];
    free(order);
}

static void keep_samples(struct victims *victims, long count, double clock_us)
{
    double all_us = 0.0;

    for (long i = 0; i < count; i++) {
        double us =
            clock_between_us(victims->stamps_ns[i], victims->stamps_ns[i + 1]) -
            clock_us;

        us = us > 0.0 ? us : 0.0;
        victims->samples_us[victims->n++] = us;
        all_us += us;
    }
    victims->rates += (double)count / all_us;
    victims->rings++;
}

/* Return whether the time of all rings is over, on all victims alike. */
static bool is_late(const struct victims *victims, int64_t start_ns)
{
    long time_ms = victims->work->common->time_ms;
    int late = time_ms > 0 && clock_between_us(start_ns, clock_now_ns()) >
                                  1e3 * (double)time_ms;

    CHECK_MPI(MPI_Bcast(&late, 1, MPI_INT, 0, victims->side), "time");
    return late != 0;
}

/* As many operations of a ring as fit, after its share of the time. */
static struct settings_common fit(const struct victims *victims,
                                  victims_loop loop,
                                  struct settings_common wanted)
{
    if (wanted.time_ms > 0) {
        loop(victims, 1);
        loop(victims, PILOT);
        double pilot_us =
            clock_between_us(victims->stamps_ns[0], victims->stamps_ns[PILOT]) /
            PILOT;
        double budget_us =
            1e3 * (double)wanted.time_ms / (double)victims->work->rings;
        long fitting = budget_iterations(victims->side, pilot_us,
                                         wanted.iterations, budget_us);

        wanted.warmup = budget_warmup(&wanted, fitting);
        wanted.iterations = fitting;
    }
    return wanted;
}

void victims_measure(struct victims *victims, enum victim victim)
{
    const struct victims_work *work = victims->work;
    victims_loop loop = VICTIMS[victim].loop;
    struct settings_common wanted =
        victim == VICTIM_BANDWIDTH ? budget_windows(work->common, work->windows)
                                   : *work->common;
    double clock_us = clock_overhead_ns() / 1e3;

    victims->n = 0;
    victims->rings = 0;
    victims->rates = 0.0;
    choose_ring(victims, 0);
    CHECK_MPI(MPI_Barrier(victims->side), "start of all rings");
    wanted = fit(victims, loop, wanted);
    int64_t start_ns = clock_now_ns();

    for (long ring = 0; ring < work->rings; ring++) {
        if (ring > 0 && is_late(victims, start_ns)) {
            break;
        }
        choose_ring(victims, ring);
        CHECK_MPI(MPI_Barrier(victims->side), "start of ring %ld", ring);
        loop(victims, wanted.warmup);
        loop(victims, wanted.iterations);
        keep_samples(victims, wanted.iterations, clock_us);
    }
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

struct victims_result victims_summarise(struct victims *victims,
                                        enum victim victim)
{
    double parts = VICTIMS[victim].parts;
    double mean = quantile_mean(victims->side, victims->samples_us, victims->n);
    long long n = (long long)victims->n;

    qsort(victims->samples_us, victims->n, sizeof(double), compare_numbers);
    double p99 =
        quantile_of_all(victims->side, victims->samples_us, victims->n, 0.99);

    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_LONG_LONG, MPI_SUM,
                            victims->side),
              "samples of all victims");
    if (victim == VICTIM_BANDWIDTH) {
        double rate = victims->rates / (double)victims->rings;
        double bytes =
            2.0 * (double)victims->work->window * VICTIMS[victim].size_bytes;

        return (struct victims_result){
            bytes * quantile_mean(victims->side, &rate, 1), bytes / p99, n};
    }
    return (struct victims_result){mean / parts, p99 / parts, n};
}

static bool validate_sum(const struct victims *victims)
{
    double number = victims->rank + 1.0;
    double expected = victims->ranks * (victims->ranks + 1.0) / 2.0;
    double sum = 0.0;

    CHECK_MPI(
        MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, victims->slice),
        "a number");
#ifdef PLANT_CORRUPTION
    sum += 1.0;
#endif
    if (sum != expected) {
        check_print("validation failed: a sum of %d ranks is %.17g, expected "
                    "%.17g",
                    victims->ranks, sum, expected);
    }
    return sum == expected;
}

bool victims_validate(struct victims *victims, enum victim victim)
{
    size_t size = (size_t)VICTIMS[victim].size_bytes;
    int rank = victims->rank;

    if (victim == VICTIM_ALLREDUCE) {
        return validate_sum(victims);
    }
    payload_fill(victims->send[LEFT], size, payload_key(rank, TO_LEFT));
    payload_fill(victims->send[RIGHT], size, payload_key(rank, TO_RIGHT));
    exchange(victims, (int)size, 1);
    return payload_check(victims->receive[LEFT], size,
                         payload_key(victims->left, TO_RIGHT), victims->left) &&
           payload_check(victims->receive[RIGHT], size,
                         payload_key(victims->right, TO_LEFT), victims->right);
}
