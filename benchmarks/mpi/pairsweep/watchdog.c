/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WATCHDOG_TEXT_SIZE = 512, WATCHDOG_WAITING = -1 };

/*
 * A signal handler has no other place to find things. All texts are made
 * before, as it may only copy and write, and the timed loops begin right after
 * a watch is set.
 */
static struct {
    long limit_s;
    char host[WATCHDOG_TEXT_SIZE / 2];
    char pair[WATCHDOG_TEXT_SIZE];
    char waiting[WATCHDOG_TEXT_SIZE];
    char limit[64];
    char waiting_limit[64];
    volatile sig_atomic_t phase;
} watchdog;

static const char *const WATCHDOG_PHASES[] = {
    [WATCHDOG_CONNECT] = "connect",
    [WATCHDOG_LATENCY] = "latency",
    [WATCHDOG_BANDWIDTH] = "bandwidth",
    [WATCHDOG_VALIDATE] = "validate",
};

static void watchdog_bark(int signal_number)
{
    char line[2 * WATCHDOG_TEXT_SIZE];
    char *end = line;

    (void)signal_number;
    if (watchdog.phase == WATCHDOG_WAITING) {
        end = stpcpy(end, watchdog.waiting);
        end = stpcpy(end, watchdog.waiting_limit);
    } else {
        end = stpcpy(end, watchdog.pair);
        end = stpcpy(end, WATCHDOG_PHASES[watchdog.phase]);
        end = stpcpy(end, watchdog.limit);
    }
    ssize_t written = write(STDERR_FILENO, line, (size_t)(end - line));
    (void)written;
    _exit(CHECK_FAILED);
}

static void watchdog_say_limit(char text[64], long limit_s)
{
    (void)snprintf(text, 64, ": no end within %ld s\n", limit_s);
}

void watchdog_start(const char *host, long limit_s)
{
    struct sigaction action = {.sa_handler = watchdog_bark};

    watchdog.limit_s = limit_s;
    (void)snprintf(watchdog.host, sizeof(watchdog.host), "%s", host);
    watchdog_say_limit(watchdog.limit, limit_s);
    watchdog_name_round(0);
    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGALRM, &action, NULL) != 0) {
        check_abort(CHECK_FAILED, "sigaction: SIGALRM: %s", strerror(errno));
    }
}

void watchdog_name_round(int round)
{
    watchdog_stop();
    (void)snprintf(watchdog.waiting, sizeof(watchdog.waiting),
                   "pairsweep: %s waited in vain for the others, round %d",
                   watchdog.host, round);
}

void watchdog_name_pair(const char *source, const char *destination, int rail,
                        int round)
{
    watchdog_stop();
    (void)snprintf(watchdog.pair, sizeof(watchdog.pair),
                   "pairsweep: hung pair %s %s rail %d round %d phase ", source,
                   destination, rail, round);
}

void watchdog_watch(enum watchdog_phase phase)
{
    watchdog.phase = (sig_atomic_t)phase;
    (void)alarm((unsigned)watchdog.limit_s);
}

void watchdog_wait(int factor)
{
    long limit_s = factor * watchdog.limit_s;

    watchdog_stop();
    watchdog_say_limit(watchdog.waiting_limit, limit_s);
    watchdog.phase = WATCHDOG_WAITING;
    (void)alarm((unsigned)limit_s);
}

void watchdog_stop(void)
{
    (void)alarm(0);
}

void watchdog_tell_failed(const char *error)
{
    if (watchdog.phase != WATCHDOG_WAITING && watchdog.pair[0] != '\0') {
        (void)fprintf(stderr, "%s%s: %s\n", watchdog.pair,
                      WATCHDOG_PHASES[watchdog.phase], error);
    }
}
