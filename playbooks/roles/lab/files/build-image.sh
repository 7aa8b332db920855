#!/bin/sh
# Build the base image from the machine's own apt sources:
# build-image.sh IMAGE USER UID_BASE PACKAGE...
# The image appears under its name only when it is complete.
set -eu
image=$1
export LAB_USER="$2"
uid_base=$3
shift 3

mkdir -p "$(dirname "$image")"
partial=$(mktemp -d "$image.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
chmod 0755 "$partial"

# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # the $(...) are apt's own placeholders
sources=$(apt-get indextargets 'Created-By: Packages' 'Origin: Debian' \
    --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' | sort -u)
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
    --customize-hook="sh $(dirname "$0")/customize-image.sh \"\$1\"" \
    "$release" "$partial" -

# The nodes' root and users are unprivileged users of this machine: shift all owners.
systemd-nspawn --quiet --directory "$partial" --register=no --keep-unit \
    --private-users="$uid_base:65536" --private-users-ownership=chown /bin/true
mv -T "$partial" "$image"
