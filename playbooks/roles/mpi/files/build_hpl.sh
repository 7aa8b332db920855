#!/bin/bash
# Build and install HPL (High-Performance Linpack) for one MPI stack.
# Usage: build_hpl.sh ARCHIVE TARGET BLAS, with CC, the MPI wrapper; BLAS are options of
# the linker. ARCHIVE is a release of HPL, or of HPCC, which contains HPL 2.0.
set -eu
umask g-w,o-w # only the owner may change what is installed
archive=$1 target=$2 blas=$3
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX") # not in /tmp, which may be mounted noexec
trap 'rm -rf "$work"' EXIT
mkdir "$work/source" "$work/objects" "$work/bin"
tar -xf "$archive" -C "$work/source" --strip-components=1 --no-same-owner
source=$work/source
[ -d "$source/hpl" ] && source=$source/hpl
test -f "$source/testing/ptest/HPL_pdtest.c" || {
    echo "no HPL in $archive: expected hpl-2.3.tar.gz, or a release of HPCC" >&2
    exit 1
}
# MPI-3 removed names that HPL up to 2.2 uses.
sed -i 's/\bMPI_Address\b/MPI_Get_address/; s/\bMPI_Type_struct\b/MPI_Type_create_struct/' \
    "$source"/src/*/*.c
includes=(-I"$source/include" -I"$source/../include")
if [ "$source" != "$work/source" ]; then
    # HPCC calls HPL as a function that reads and writes files of HPCC.
    sed -i 's/hpccinf\.txt/HPL.dat/; /fid = 8;/d; /strcpy( file, "hpccoutf/d' \
        "$source/testing/ptest/HPL_pdinfo.c"
    cat >"$source/HPL_program.c" <<'END'
#include <hpl.h>
int HPL_main(int, char **, HPL_RuntimeData *, int *);
/* HPCC goes on with an input of its own where that of the user is wrong. */
int HPCC_Defaults() {
    fprintf(stderr, "HPL.dat: illegal input\n");
    return MPI_Abort(MPI_COMM_WORLD, 1);
}
int main(int argc, char **argv) {
    HPL_RuntimeData best = {0};
    int failed = 0;
    MPI_Init(&argc, &argv);
    HPL_main(argc, argv, &best, &failed);
    MPI_Finalize();
    return failed;
}
END
fi
# The precision of the machine is found out at run time: without optimization.
cd "$work/objects"
find "$source" -name 'HPL_*.c' ! -name HPL_dlamch.c -print0 |
    xargs -0 -n 8 -P "$(nproc)" "$CC" -O3 -std=gnu99 -DAdd_ -DF77_INTEGER=int -DStringSunStyle \
        "${includes[@]}" -c
"$CC" -O0 -std=gnu99 -DAdd_ -DF77_INTEGER=int -DStringSunStyle "${includes[@]}" \
    -c "$source/src/auxil/HPL_dlamch.c"
# shellcheck disable=SC2086 # BLAS are several options
"$CC" -o "$work/bin/xhpl" ./*.o $blas -lm
rm -rf "$target"
mkdir "$target"
cp "$work/bin/xhpl" "$target"
