#!/bin/bash
# Solve and install one environment; runs on the system, by a login shell.
# Usage: install.sh PREFIX ENVIRONMENT SOLVE_KEY STAMP JOBS INSTALL PUSH PACKAGE...
# ENVIRONMENT is a folder of spack-env. Without PACKAGEs installs all; what is not named
# gets no module either. With INSTALL=false nothing, it solves only. An interrupted run
# goes on where it stopped: Spack keeps what is finished. All it prints is in PREFIX/log,
# too.
set -euo pipefail
umask g-w,o-w # only the owner may change what is installed
prefix=$1 environment=$2 solve_key=$3 stamp=$4 jobs=$5 install=$6 push=$7
shift 7
packages=("$@")
state=$prefix/spack-env/$environment/.spack-env
log=$prefix/log/${environment##*/}.log
# shellcheck source=/dev/null
. "$prefix/activate.sh"
cd "$prefix/spack-env"
export LC_MESSAGES=C # of gpg
mkdir -p "$state" "${log%/*}"
: >"$log"

# The sources that are in no mirror, one a line. Only advice after a failure: without it,
# the failure itself is still told.
missing() {
    spack -e "$environment" python "$prefix/steps/missing.py" "$prefix/mirror" \
        "${packages[@]}" || true
}

# The keys, one a line, that signed builds which were refused: they are not trusted.
strangers() {
    awk '/^gpg: .*using .* key/ { key = $NF } /^gpg: .*No public key/ { print key }' \
        "$log" | sort -u
}

run() { # all of Spack's output is for the log, its errors are for us
    # The installer of Spack 1.2 polls its input, which /dev/null does not allow.
    if ! : | spack --color=never -e "$environment" "$@" >>"$log" 2>&1; then
        {
            echo "spack -e $environment $* failed; all of it is in $log:"
            grep -A5 -E '^(==> )?Error|^  >> ' "$log" | head -n 25
            lacking=$([[ $1 != install ]] || missing)
            if [[ $lacking ]]; then
                printf 'sources that are in no mirror:\n%s\n' "$lacking"
            fi
            if [[ $(strangers) ]]; then
                echo "builds in the cache are refused, for these keys are not trusted;" \
                    "put them into the folder keys of spack_build_folder:"
                strangers
            fi
        } >&2
        exit 1
    fi
}

describe() { # for Ansible, which may come when this is interrupted
    spack -e "$environment" python "$prefix/steps/describe.py" >"$state/found.part"
    mv "$state/found.part" "$state/found.json"
}

rm -f "$state"/installed-*
if [[ ! -e $state/solved-$solve_key || ! -e $environment/spack.lock ]]; then
    rm -f "$state"/solved-*
    run concretize --force
    describe
    touch "$state/solved-$solve_key"
fi
if [[ $install == true ]]; then
    options=()
    if ((jobs)); then
        options+=("--jobs=$jobs")
    fi
    run install "${options[@]}" "${packages[@]}"
    run module tcl refresh -y --delete-tree
    if [[ $push == true ]]; then
        run buildcache push --update-index cache "${packages[@]}"
    fi
    describe
fi
touch "$stamp"
