#!/bin/bash
# Download the wheels that requirements files pin, and pack them; runs on the control
# machine. Usage: wheels.sh ARCHIVE PYTHON PIP-OPTION...
set -eu
archive=$1 python=$2
shift 2
mkdir -p "$(dirname "$archive")"
work=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
    --dest "$work/wheels" "$@"
tar --create --file="$work/archive" --directory="$work" wheels
mv "$work/archive" "$archive"
