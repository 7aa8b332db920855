/* SPDX-License-Identifier: Apache-2.0 */
/* How mr_cost measures one size. */
#ifndef SEATRIAL_REGISTRATION_H
#define SEATRIAL_REGISTRATION_H

#include "link.h"
#include "memory.h"
#include "pages.h"
#include "stats.h"

/** What is registered, in the order of the rows. */
enum registration_state {
    REGISTRATION_WARM,      /* always the same memory, in use before */
    REGISTRATION_COLD,      /* ever new memory, all pages present */
    REGISTRATION_UNTOUCHED, /* ever new memory, no page present */
    REGISTRATION_STATES,
};

/** Registrations of one size. */
struct registration {
    const struct port *port;
    enum registration_state state;
    enum pages_kind kind;
    size_t size_bytes;
};

/** Room for the samples of a loop, in us. */
struct registration_samples {
    double *reg;
    double *dereg;
};

/** The numbers of a row. */
struct registration_result {
    size_t size_bytes;
    size_t huge_bytes; /* on huge pages in fact */
    struct stats_summary reg;
    struct stats_summary dereg;
    bool valid;
};

/**
 * Register and deregister n times and write the times into samples, each less
 * clock_us. False, with the reason in fault, at the first failure.
 */
bool registration_loop(const struct registration *what, double clock_us, long n,
                       const struct registration_samples *samples,
                       size_t *huge_bytes, struct fault *fault);

/**
 * Verify contents that go from one half of registered memory of twice the size
 * to the other, by a connection of the port with itself. False, with the reason
 * in fault, if that cannot be tried.
 */
bool registration_validate(const struct registration *what,
                           const struct verbs_settings *settings, bool *valid_p,
                           struct fault *fault);

/**
 * Lines through the medians of count results by their pages of page_bytes; a
 * single size has no line: NAN.
 */
struct stats_line registration_fit(const struct registration_result *results,
                                   size_t count, double page_bytes,
                                   bool is_dereg);

#endif
