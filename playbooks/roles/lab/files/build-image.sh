#!/bin/sh
# Build the base image from the machine's own apt sources:
# build-image.sh DISTRIBUTION IMAGE USER UID_BASE PACKAGE...
# The image appears under its name only when it is complete.
set -eu
distribution=$1 image=$2
export LAB_USER="$3"
uid_base=$4
shift 4

files=$(dirname "$0")
mkdir -p "$(dirname "$image")"
partial=$(mktemp -d "$image.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
chmod 0755 "$partial"

# shellcheck source=/dev/null
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # the $(...) are apt's own placeholders
sources=$(apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
    --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' | sort -u |
    sed "s/ $own/ $distribution/")
if [ -z "$sources" ]; then
    echo "no Debian sources known to apt: run 'apt-get update' first" >&2
    exit 1
fi
echo "$sources" | mmdebstrap --mode=root --variant=apt --quiet \
    --include="$(echo "$*" | tr ' ' ',')" \
    --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="sh $files/customize-image.sh \"\$1\"" \
    --customize-hook="sh $files/customize-$distribution.sh \"\$1\"" \
    "$distribution" "$partial" -

# The nodes' root and users are unprivileged users of this machine: shift all owners.
systemd-nspawn --quiet --directory "$partial" --register=no --keep-unit \
    --private-users="$uid_base:65536" --private-users-ownership=chown /bin/true
mv -T "$partial" "$image"
