/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded where ranks outnumber cores, as in the lab: Debian's MPICH
 * (ch4:ucx) spins and has no setting to yield. A rank that made no progress
 * lets others run. (Measured: an exchange of 4 ranks on 2 cores took 8000 us
 * without, 20 us with.)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);

    if (progress == NULL) {
        *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
    }
    unsigned count = progress(worker);
    if (count == 0) {
        (void)sched_yield();
    }
    return count;
}
