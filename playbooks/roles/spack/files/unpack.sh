#!/bin/bash
# Unpack PREFIX/NAME.tar in place of the folder PREFIX/NAME; runs on the system.
# Usage: unpack.sh PREFIX NAME STAMP
# What Spack has written below spack-env stays: lock files, views and modules.
set -euo pipefail
umask g-w,o-w # what is installed, nobody else may change
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
    entries=("$name.new"/*) # archives of a forge have one folder at the top
    top=$name.new
    if [[ ${#entries[@]} == 1 ]]; then
        top=${entries[0]}
    fi
    rm -rf "$name"
    mv "$top" "$name"
    rm -rf "$name.new"
fi
touch "$stamp"
rm "$name.tar"
