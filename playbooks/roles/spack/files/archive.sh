#!/bin/bash
# Bring one commit of a repository to the control machine, as an archive that holds the
# commit's name. Usage: archive.sh SOURCE COMMIT ARCHIVE SETTINGS
# SOURCE is a URL, a git repository here, or an archive made by `git archive`; SETTINGS
# are what an error tells to change. Prints something only if it wrote ARCHIVE.
set -euo pipefail
source=$1 commit=$2 archive=$3 settings=$4

# Of an archive, compressed or not. Nothing if it names none: git fails on such a file,
# and the caller says so in its own words.
commit_of() {
    { gzip -cdf "$1" | git get-tar-commit-id; } 2>/dev/null || true
}

refuse() {
    echo "commit $commit: $1; or change $settings" >&2
    exit 1
}

if [[ -f $archive && $(commit_of "$archive") == "$commit" ]]; then
    exit
fi
mkdir -p "${archive%/*}"
part=$archive.part
repository=
trap 'rm -rf "$part" "$repository"' EXIT
if [[ -f $source ]]; then
    found=$(commit_of "$source")
    [[ $found == "$commit" ]] || refuse "the archive $source holds ${found:-no commit \
that git knows}; make it with \`git archive $commit\`"
    gzip -cdf "$source" >"$part"
else
    if [[ -d $source ]]; then
        repository_of_commit=$source
        git -C "$source" rev-parse --git-dir >/dev/null
        git -C "$source" cat-file -e "$commit^{commit}" 2>/dev/null ||
            refuse "the repository $source has no such commit; fetch it there"
    else
        repository=$(mktemp -d)
        repository_of_commit=$repository
        git init --quiet --bare "$repository"
        git -C "$repository" fetch --quiet --depth 1 "$source" "$commit" ||
            refuse "cannot be fetched from $source; carry over what \
playbooks/mirror.yml makes on a machine with internet"
    fi
    git -C "$repository_of_commit" archive --output="$part" --format=tar "$commit"
fi
mv "$part" "$archive"
echo "$archive: $commit"
