/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include "settings.h"
#include "version.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

static bool program_verify(const struct program *program, const void *settings,
                           char error[OPTIONS_ERROR_SIZE])
{
    const struct settings_common *common = settings;

    if (common->sizes.min > common->sizes.max) {
        (void)snprintf(error, OPTIONS_ERROR_SIZE,
                       "smallest size %ld is above the largest, %ld",
                       common->sizes.min, common->sizes.max);
        return false;
    }
    return program->verify == NULL || program->verify(settings, error);
}

/* Help and version need no MPI; of many processes the first one prints. */
static enum check_exit program_describe(const struct program *program,
                                        enum options_outcome outcome)
{
    if (!check_is_first_process()) {
        return CHECK_PASS;
    }
    if (outcome == OPTIONS_HELP) {
        options_help(stdout, program->name, program->purpose, program->options,
                     program->defaults);
    } else {
        (void)printf("%s %s (%s)\n", program->name, VERSION, COMMIT);
    }
    return fflush(stdout) == 0 ? CHECK_PASS : CHECK_FAILED;
}

int program_main(const struct program *program, int argc, char **argv)
{
    alignas(max_align_t) char settings[PROGRAM_SETTINGS_SIZE];
    char error[OPTIONS_ERROR_SIZE] = "";
    enum check_exit code = CHECK_USAGE;
    int rank = 0;

    assert(program->settings_size <= sizeof(settings));
    memcpy(settings, program->defaults, program->settings_size);
    enum options_outcome outcome =
        options_parse(program->options, settings, argc, argv, error);
    if (outcome == OPTIONS_HELP || outcome == OPTIONS_VERSION) {
        return (int)program_describe(program, outcome);
    }
    bool usable =
        outcome == OPTIONS_RUN && program_verify(program, settings, error);
    if (usable && program->prepare != NULL) {
        program->prepare(settings);
    }
    CHECK_MPI(MPI_Init(&argc, &argv), "start");
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "all ranks");
    CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "all ranks");
    if (usable) {
        code = program->run(program, settings);
    } else if (rank == 0) {
        check_print("%s (see --help)", error);
    }
    CHECK_MPI(MPI_Finalize(), "end");
    return (int)code;
}
