#!/bin/bash
# Unpack PREFIX/NAME.tar in place of the folder PREFIX/NAME; runs on the system.
# Usage: unpack.sh PREFIX NAME STAMP
# What Spack has written below spack-env stays: lock files, views and modules.
set -euo pipefail
umask g-w,o-w # only the owner may change what is installed
prefix=$1 name=$2 stamp=$3
cd "$prefix"
if [[ $name == spack-env ]]; then
    mkdir -p "$name"
    rm -f "$name"/.from-*
    find "$name" \( -name .spack-env -o -name modules \) -prune \
        -o ! -type d ! -name spack.lock -exec rm -f {} +
    tar -xf "$name.tar" -C "$name"
else
    rm -rf "$name.new"
    mkdir "$name.new"
    tar -xf "$name.tar" -C "$name.new"
    rm -rf "$name"
    mv "$name.new" "$name"
fi
touch "$stamp"
rm "$name.tar"
