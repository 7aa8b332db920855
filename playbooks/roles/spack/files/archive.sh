#!/bin/bash
# Bring one commit of a repository to the control machine, as a git bundle, and write the
# archive that is unpacked on the system. Usage: archive.sh SOURCE COMMIT STEM SETTINGS
# SOURCE is a URL, a git repository here, or a git bundle; SETTINGS are named in errors.
# Writes STEM.tar each time; prints something only if it wrote STEM.bundle.
#
# The bundle may have been carried over, so nothing in it is trusted. git computes the
# hash of every object that it takes in, and then follows the commit to all its files:
# the right commit has the right content. An archive cannot be checked that way: the
# commit in its header is only a comment.
set -euo pipefail
source=$1 commit=$2 stem=$3 settings=$4
bundle=$stem.bundle

refuse() {
    echo "commit $commit: $1" >&2
    exit 1
}

# The commits that a bundle names, on one line; fails if the file is no bundle.
named() {
    git bundle list-heads "$1" 2>/dev/null | cut -d ' ' -f 1 | sort -u | paste -s -d ' '
}

# Take the commit and its files, without its history, into the empty repository.
take() {
    git -C "$repository" fetch --quiet --no-tags "$@" "$commit"
}

[[ $commit =~ ^[0-9a-f]{40}$ ]] || refuse "expected 40 lower-case hex digits; \
change $settings"
mkdir -p "${stem%/*}"
repository=$(mktemp -d)
trap 'rm -rf "$repository" "$stem".*.part' EXIT
git init --quiet --bare "$repository"
echo "$commit" >"$repository/shallow" # its parents are not needed

kept="$bundle is missing"
if [[ -f $bundle ]]; then
    kept="$bundle is no git bundle"
    if commits=$(named "$bundle"); then
        kept="$bundle is of commit ${commits:-(none)}"
    fi
fi
if [[ $kept == "$bundle is of commit $commit" ]]; then
    take "$(realpath "$bundle")" || refuse "$bundle names this commit, but does not \
hold its files: it was changed or is damaged; remove it, and carry over what \
playbooks/mirror.yml makes on a machine with internet"
else
    if [[ -f $source ]]; then
        commits=$(named "$source") || refuse "expected a git bundle, found another \
file: $source; an archive does not prove its content; make a bundle in a clone that has \
the commit checked out: \`git bundle create spack.bundle HEAD\`; or change $settings"
        take "$(realpath "$source")" || refuse "the bundle $source, of commit \
${commits:-(none)}, does not hold this commit with all its files; make it again in a \
clone that has the commit checked out: \`git bundle create spack.bundle HEAD\`; or \
change $settings"
    elif [[ -d $source ]]; then
        take --depth=1 "$(realpath "$source")" ||
            refuse "git cannot take it from the repository $source; fetch it there; \
or change $settings"
    else
        take --depth=1 "$source" || refuse "cannot be fetched from $source, and $kept; \
carry over what playbooks/mirror.yml makes on a machine with internet; or change \
$settings"
    fi
    git -C "$repository" update-ref refs/heads/pinned "$commit"
    git -C "$repository" bundle create --quiet - refs/heads/pinned >"$bundle.part"
    mv "$bundle.part" "$bundle"
    echo "$bundle: $commit"
fi
git -C "$repository" archive --format=tar "$commit" >"$stem.tar.part"
mv "$stem.tar.part" "$stem.tar"
