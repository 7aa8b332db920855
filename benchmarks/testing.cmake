# SPDX-License-Identifier: Apache-2.0
# How programs refuse bad input is tested, with exit status and text, by pytest.
# Tests may be run as root, with more ranks than cores. The MPI libraries leak on
# purpose, so leaks are looked for in the unit tests only. hwloc reads a list of all PCI
# devices of the world, which takes AddressSanitizer 2 s of every start.
set(mpi_environment HWLOC_COMPONENTS=-pci
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0)

# MPICH spins: eight ranks on two cores need the lab's library to take turns.
if(BUILD_TESTING AND MPI_C_COMPILER MATCHES "mpich")
    add_library(mpich_yield SHARED
        ${PROJECT_SOURCE_DIR}/../playbooks/roles/lab/files/mpich-yield.c)
    target_compile_options(mpich_yield PRIVATE -U_GNU_SOURCE -fno-sanitize=all)
    set_target_properties(mpich_yield PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    target_link_libraries(mpich_yield PRIVATE ${CMAKE_DL_LIBS})
    list(APPEND mpi_environment
        LD_PRELOAD=${CMAKE_BINARY_DIR}/bin/libmpich_yield.so)
endif()

# Run a program with np ranks; the other arguments are its own.
function(add_mpi_test name np program)
    if(NOT BUILD_TESTING)
        return()
    endif()
    add_test(NAME ${name}
        COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${np}
            ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${program}> ${ARGN})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${mpi_environment}"
        TIMEOUT 120)
endfunction()

# Run the twin of a program that damages a byte: it must say so.
function(add_corruption_test program np message)
    if(NOT BUILD_TESTING)
        return()
    endif()
    add_mpi_test(${program}_finds_corruption ${np} ${program}_corrupt ${ARGN})
    set_tests_properties(${program}_finds_corruption PROPERTIES
        PASS_REGULAR_EXPRESSION "${message}")
endfunction()
