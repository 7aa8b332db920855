/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

bool fault_set(struct fault *fault, enum check_exit code, const char *format,
               ...)
{
    va_list arguments;

    if (fault->code == CHECK_PASS) {
        fault->code = code;
        va_start(arguments, format);
        (void)vsnprintf(fault->text, sizeof(fault->text), format, arguments);
        va_end(arguments);
    }
    return false;
}

enum check_exit fault_agree(MPI_Comm comm, const struct fault *fault)
{
    int rank = 0;
    int code = (int)fault->code;

    CHECK_MPI(MPI_Comm_rank(comm, &rank), "errors of the set-up");
    int first = code != CHECK_PASS ? rank : INT_MAX;
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm),
              "errors of the set-up");
    if (first == INT_MAX) {
        return CHECK_PASS;
    }
    if (first == rank) {
        check_print("%s", fault->text);
    }
    CHECK_MPI(MPI_Bcast(&code, 1, MPI_INT, first, comm),
              "errors of the set-up");
    return (enum check_exit)code;
}
