/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_WATCHDOG_H
#define SEATRIAL_WATCHDOG_H

/**
 * Ends the process, and so the run, when something takes too long: a rank that
 * is stuck in MPI cannot be asked. First it says what it was about, on stderr.
 */
enum watchdog_phase {
    WATCHDOG_CONNECT,
    WATCHDOG_LATENCY,
    WATCHDOG_BANDWIDTH,
    WATCHDOG_VALIDATE,
};

/** Between two barriers are two phases of a pair; the others wait for both. */
enum { WATCHDOG_WAIT_FACTOR = 3 };

/** Be ready to watch on this host, the phases of a pair for limit_s. */
void watchdog_start(const char *host, long limit_s);

/** Name what is watched from now on. Nothing is watched while it changes. */
void watchdog_name_round(int round);
void watchdog_name_pair(const char *source, const char *destination, int rail,
                        int round);

/** Watch a phase of the pair, from now on. */
void watchdog_watch(enum watchdog_phase phase);

/** Watch waiting for the others, for factor times the limit. */
void watchdog_wait(int factor);

/** Tell the pair and its phase whose error this is, if it is of a pair. */
void watchdog_tell_failed(const char *error);

/** Watch nothing. */
void watchdog_stop(void);

#endif
