#!/bin/bash
# Build and install the benchmarks for one MPI stack; run by a login shell.
# Usage: build.sh PREFIX STACK COMPILER COMMIT CMAKE STAMP PROGRAM...
set -eu
umask g-w,o-w # only the owner may change what is installed
prefix=$1 stack=$2 compiler=$3 commit=$4 cmake=$5 stamp=$6
shift 6
target=$prefix/benchmarks/$stack

module use "$prefix/modulefiles"
module load "seatrial-mpi/$stack"
command -v "$cmake" >/dev/null || {
    echo "no $cmake on PATH: install CMake or set benchmarks_cmake" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$prefix/benchmarks/sources.tar" -C "$work"
"$cmake" -S "$work" -B "$work/build" -DBUILD_TESTING=OFF \
    -DMPI_C_COMPILER="$compiler" -DSEATRIAL_COMMIT="$commit" \
    -DCMAKE_INSTALL_PREFIX="$target"
"$cmake" --build "$work/build" --parallel
rm -rf "$target"
"$cmake" --install "$work/build"
for program; do
    test -x "$target/bin/$program" || {
        echo "the build installed no bin/$program" >&2
        exit 1
    }
done
touch "$stamp"
