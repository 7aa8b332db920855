#!/bin/bash
# Pack spack-env so that equal content gives an equal file, without what Spack writes
# when it runs there, and without what is for people: environments are solved again when
# the file is another. Usage: pack_env.sh SPACK_ENV ARCHIVE; prints the checksum.
set -euo pipefail
mkdir -p "$(dirname "$2")"
tar --create --file="$2" --directory="$1" --exclude='*/.*' --exclude=spack.lock \
    --exclude=modules --exclude=__pycache__ --exclude=README.md --sort=name --mtime=@0 \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX .
sha256sum <"$2"
