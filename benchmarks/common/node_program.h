/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SEATRIAL_NODE_PROGRAM_H
#define SEATRIAL_NODE_PROGRAM_H

#include "options.h"
#include "output.h"

#include <stdbool.h>

enum node_exit { NODE_PASS = 0, NODE_FAILED = 1, NODE_USAGE = 2 };

enum { NODE_HOST_SIZE = 256 };

/** A program that measures one node, without MPI. */
struct node_program {
    const char *name;
    const char *purpose;
    const struct options_row *options;
    const void *defaults;
    /** Refuse what contradicts itself: false, and why. */
    bool (*verify)(const void *settings, char error[OPTIONS_ERROR_SIZE]);
    enum node_exit (*run)(const void *settings);
};

/** Read the command line into settings, which are the defaults, and run. */
int node_main(const struct node_program *program, void *settings, int argc,
              char **argv);

/** Write the name of this node, or that it is unknown. */
void node_host(char host[NODE_HOST_SIZE]);

/** Print an error message: program, host, text. */
__attribute__((format(printf, 2, 3))) void node_print(const char *program,
                                                      const char *text, ...);

/** End the output: code, or that it failed, after an error message. */
enum node_exit node_finish(const char *program, struct output_writer *writer,
                           enum node_exit code);

#endif
