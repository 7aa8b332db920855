#!/bin/bash
# Pack a source folder so that equal content gives an equal file.
# Usage: pack.sh FOLDER ARCHIVE
# Prints the archive's checksum, and the commit that last changed the folder.
set -eu
mkdir -p "$(dirname "$2")"
tar --create --file="$2" --directory="$1" --exclude=./build --exclude='./.*' \
    --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX .
sha256sum <"$2"
commit=$(git -C "$1" log -1 --format=%h --abbrev=12 -- . 2>/dev/null) || commit=
test -z "$(git -C "$1" status --porcelain -- . 2>/dev/null)" || commit=$commit-dirty
echo "${commit:-unknown}"
