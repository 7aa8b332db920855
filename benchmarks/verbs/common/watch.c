/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include "launcher.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a signal handler may read: text of this process, written before. */
static struct watch_message {
    char text[512];
    size_t length;
} watch_message;

static void watch_end(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, watch_message.text, watch_message.length) < 0) {
        _exit(1);
    }
    _exit(1);
}

void watch_start(long timeout_s)
{
    char host[256] = "unknown host";

    (void)gethostname(host, sizeof(host) - 1);
    int length = snprintf(
        watch_message.text, sizeof(watch_message.text),
        "%s: rank %ld on %s: MPI: no answer from the other ranks "
        "within %ld s: look for a rank that did not start or hangs, "
        "or give more time by --timeout\n",
        program_invocation_short_name, launcher_rank(), host, timeout_s);
    watch_message.length = length > 0 ? (size_t)length : 0;
    struct sigaction action = {.sa_handler = watch_end};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm((unsigned)timeout_s);
}

void watch_stop(void)
{
    (void)alarm(0);
}
