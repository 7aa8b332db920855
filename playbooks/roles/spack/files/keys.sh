#!/bin/bash
# Make the key that signs builds, and trust those of other machines; runs on the system.
# Usage: keys.sh PREFIX NAME MAIL; without NAME no key is made. Prints what it did.
set -euo pipefail
prefix=$1 name=$2 mail=$3
# shellcheck source=/dev/null
. "$prefix/activate.sh"
cd "$prefix"
shopt -s nullglob
keys=(keys/*)
if [[ -z $name && ${#keys[@]} == 0 ]]; then
    exit
fi
if ! command -v gpg >/dev/null; then
    echo "no gpg on PATH: install GnuPG, or set spack_build_cache to false" >&2
    exit 1
fi
if [[ -n $name && -z $(gpg --homedir gnupg --list-secret-keys --with-colons) ]]; then
    spack gpg create "$name" "$mail" >&2
    echo "made the key of $name <$mail>"
fi
for key in "${keys[@]}"; do
    if [[ ! -e gnupg/${key##*/}.trusted ]]; then
        spack gpg trust "$key" >&2
        touch "gnupg/${key##*/}.trusted"
        echo "trust $key"
    fi
done
