#!/bin/bash
# Build and install the OSU Micro-Benchmarks for one MPI stack.
# Usage: build_osu.sh ARCHIVE TARGET, with CC and CXX, the MPI wrappers
set -eu
umask g-w,o-w # only the owner may change what is installed
archive=$1 target=$2
mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX") # not in /tmp, which may be mounted noexec
trap 'rm -rf "$work"' EXIT
tar -xzf "$archive" -C "$work" --strip-components=1 --no-same-owner
mkdir "$work/build"
cd "$work/build"
../configure --prefix="$target" CC="$CC" ${CXX:+"CXX=$CXX"}
make --jobs="$(nproc)"
rm -rf "$target"
make install
