#!/bin/bash
# Build and install IOR and mdtest for one MPI stack, with POSIX files only.
# Usage: build_ior.sh ARCHIVE TARGET, with CC, the MPI wrapper
set -eu
umask g-w,o-w # only the owner may change what is installed
archive=$1 target=$2
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX") # not in /tmp, which may be mounted noexec
trap 'rm -rf "$work"' EXIT
tar -xzf "$archive" -C "$work" --strip-components=1 --no-same-owner
cd "$work"
[ -x configure ] || ./bootstrap
./configure --prefix="$target" CC="$CC" MPICC="$CC" --without-mpiio --without-hdf5 \
    --without-ncmpi --without-lustre
make --jobs="$(nproc)"
rm -rf "$target"
make install
for program in ior mdtest; do
    test -x "$target/bin/$program" || {
        echo "the build made no $program" >&2
        exit 1
    }
done
