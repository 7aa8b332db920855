# SPDX-License-Identifier: Apache-2.0
# Write version.h with the commit of the sources, at build time: a build of other
# sources must not keep the commit of its configuration. Takes: version, commit
# (empty: ask git), source_dir, output.
if(commit STREQUAL "")
    execute_process(
        COMMAND git -C ${source_dir} rev-parse --short=12 HEAD
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
        RESULT_VARIABLE failed ERROR_QUIET)
    if(failed)
        set(commit "commit unknown")
    else()
        execute_process(
            COMMAND git -C ${source_dir} status --porcelain -- .
            OUTPUT_VARIABLE changes ERROR_QUIET)
        if(NOT changes STREQUAL "")
            string(APPEND commit "-dirty")
        endif()
    endif()
endif()
configure_file(${source_dir}/version.h.in ${output} @ONLY)
