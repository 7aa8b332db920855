#!/bin/bash
# Build and install the NAS Parallel Benchmarks 3.4 for one MPI stack.
# Usage: build_npb.sh ARCHIVE TARGET CLASS..., with CC, FC and FFLAGS, the MPI wrappers
set -eu
umask g-w,o-w # only the owner may change what is installed
archive=$1 target=$2
shift 2
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX") # not in /tmp, which may be mounted noexec
trap 'rm -rf "$work"' EXIT
mkdir "$work/source" "$work/bin"
tar -xzf "$archive" -C "$work/source" --strip-components=1 --no-same-owner
test -d "$work/source/NPB3.4-MPI" || {
    echo "no folder NPB3.4-MPI in $archive: expected NPB 3.4" >&2
    exit 1
}
cat >"$work/source/NPB3.4-MPI/config/make.def" <<END
MPIFC = $FC
FLINK = $FC
FFLAGS = $FFLAGS
FLINKFLAGS = $FFLAGS
MPICC = $CC
CLINK = $CC
CFLAGS = -O3
CLINKFLAGS = -O3
CC = $CC -g
BINDIR = $work/bin
RAND = randi8
END
# The classes of a benchmark share its folder, and all benchmarks share common/: a copy
# for each benchmark, so that they build at the same time.
build() {
    local benchmark=$1
    shift
    cp -r "$work/source/NPB3.4-MPI" "$work/$benchmark"
    for class; do
        [ "$benchmark$class" = isF ] && continue # there is no class F of IS
        make -C "$work/$benchmark/${benchmark^^}" CLASS="$class" || return 255
    done
}
export work
export -f build
printf '%s\n' bt sp lu ft mg cg is ep |
    xargs -I{} -P "$(nproc)" bash -c 'build "$@"' build {} "$@"
for benchmark in bt sp lu ft mg cg is ep; do
    for class; do
        [ "$benchmark$class" = isF ] && continue
        test -x "$work/bin/$benchmark.$class.x" || {
            echo "the build made no $benchmark.$class.x" >&2
            exit 1
        }
    done
done
rm -rf "$target"
mkdir -p "$target"
cp "$work"/bin/* "$target"
