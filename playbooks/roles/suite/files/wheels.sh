#!/bin/bash
# Download the wheels that requirements files pin, and pack them; runs on the control
# machine, whose Python, processor and distribution may differ from those of the system.
# Usage: wheels.sh ARCHIVE PYTHON VERSION PLATFORMS REQUIREMENTS...
# PYTHON is the control machine's, VERSION (X.Y) the system's. PLATFORMS are separated by
# spaces, best first; none: those of the control machine. After a single one, such as
# manylinux_2_28_x86_64, those of earlier glibc follow.
set -eu
archive=$1 python=$2 version=$3
read -ra platforms <<<"$4"
shift 4
if [ ${#platforms[@]} = 1 ]; then
    mapfile -t platforms < <("$python" "${BASH_SOURCE%/*}/platforms.py" "${platforms[0]}")
fi
if [ -n "${SEATRIAL_BUNDLE:-}" ]; then
    echo "the bundle has no wheels for Python $version on ${platforms[0]:-this machine}" \
        "(${archive##*/}); state suite_python_version and suite_wheel_platforms as they are" \
        "on the system, and make it again" >&2
    exit 1
fi
mkdir -p "$(dirname "$archive")"
work=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! "$python" -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
    --python-version "$version" "${platforms[@]/#/--platform=}" \
    "${@/#/--requirement=}" --dest "$work/wheels" 2>"$work/errors"; then
    package=$(sed -n 's/^ERROR: No matching distribution found for \([^ ]*\).*/\1/p' \
        "$work/errors")
    if grep -qE 'Retrying|Connection|Proxy|SSL' "$work/errors"; then
        tail -n 3 "$work/errors"
        echo "no connection to a package index; carry $archive over from a control machine" \
            "with internet, where site.yml or mirror.yml makes it"
    elif [ -n "$package" ]; then
        echo "no wheel of $package for Python $version on ${platforms[0]:-this machine} or" \
            "older; choose another Python (suite_python, spack_python), or other platforms" \
            "(suite_wheel_platforms)"
    else
        cat "$work/errors"
    fi >&2
    exit 1
fi
tar --create --file="$work/archive" --directory="$work" wheels
mv "$work/archive" "$archive"
