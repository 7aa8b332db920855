#!/bin/bash
# Make seatrial/.venv, the virtual environment of a control machine, from this folder alone.
# Usage: bash install.sh [PYTHON]
# PYTHON is one that control/ has wheels for; by default one of PATH, else the relocatable one.
set -eu
cd "$(dirname "$0")"
shopt -s nullglob

refuse() {
    echo "$PWD: $1" >&2
    exit 2
}

# Print the archive with the wheels of a Python, if there is one.
wheels_of() {
    local name
    name=$("$1" -c 'import platform, sys; print("python-%d.%d-%s.tar" % (
        *sys.version_info[:2], platform.machine()))' 2>/dev/null) || return 0
    [ ! -e "control/$name" ] || echo "control/$name"
}

sums=$(LC_ALL=C sha256sum --check --quiet --strict SHA256SUMS 2>&1) ||
    refuse "$(head -n 1 <<<"$sums"); copy the folder again"

relocatable=(seatrial/build/archives/cpython-*-"$(uname -m)"-*.tar.gz)
archive=''
for python in ${1:-python3 python3.14 python3.13 python3.12 python3.11}; do
    archive=$(wheels_of "$python")
    [ -z "$archive" ] || break
done
if [ -z "$archive" ] && [ $# = 0 ] && [ ${#relocatable[@]} = 1 ]; then
    python=$PWD/seatrial/build/python/bin/python3
    mkdir -p seatrial/build/python
    tar -xzf "${relocatable[0]}" -C seatrial/build/python --strip-components=1 \
        --no-same-owner
    archive=$(wheels_of "$python")
fi
available=(control/python-*.tar)
available=("${available[@]#control/python-}")
[ -n "$archive" ] ||
    refuse "no Python here has wheels in control/ (${1:-python3 on PATH}); expected one of \
${available[*]%.tar}; install it, or make the bundle on a machine with the same Python"

work=$(mktemp -d "$PWD/seatrial/build/wheels.XXXXXX")
trap 'rm -rf "$work"' EXIT
tar -xf "$archive" -C "$work"
cat seatrial/requirements-control.txt seatrial/playbooks/roles/suite/files/uv.txt |
    sh seatrial/playbooks/roles/suite/files/install.sh "$work/wheels" \
        "$PWD/seatrial/.venv" "$(command -v "$python")" "$work/stamp"
PYTHONWARNINGS=ignore seatrial/.venv/bin/python -m pip install --quiet --no-index --no-deps \
    --no-build-isolation --editable seatrial
seatrial/.venv/bin/seatrial --version
