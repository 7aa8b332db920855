#!/bin/bash
# Build and install HPCG for one MPI stack: the reference code, a rank for every core.
# Usage: build_hpcg.sh ARCHIVE TARGET, with CXX, the MPI wrapper
set -eu
umask g-w,o-w # only the owner may change what is installed
archive=$1 target=$2
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX") # not in /tmp, which may be mounted noexec
trap 'rm -rf "$work"' EXIT
mkdir "$work/source" "$work/objects" "$work/bin"
tar -xf "$archive" -C "$work/source" --strip-components=1 --no-same-owner
test -f "$work/source/src/ComputeSYMGS_ref.cpp" || {
    echo "no HPCG in $archive: expected hpcg-3.1.tar.gz" >&2
    exit 1
}
cd "$work/objects"
find "$work/source/src" -name '*.cpp' -print0 |
    xargs -0 -n 4 -P "$(nproc)" "$CXX" -O3 -DHPCG_NO_OPENMP -I"$work/source/src" -c
"$CXX" -o "$work/bin/xhpcg" ./*.o
rm -rf "$target"
mkdir "$target"
cp "$work/bin/xhpcg" "$target"
