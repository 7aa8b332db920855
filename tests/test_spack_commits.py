"""Spack's commits, brought to a site: genuine ones are taken, forged ones refused."""

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from test_role_spack import FILES, run


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with two commits, the second of which is its head."""
    folder = tmp_path / "repository"
    folder.mkdir()
    author = ("-c", "user.name=n", "-c", "user.email=m@localhost")
    run("git", "-C", folder, "init", "--quiet")
    for number in "12":
        (folder / "file").write_text(number)
        run("git", "-C", folder, "add", "file")
        run("git", "-C", folder, *author, "commit", "--quiet", "-m", number)
    return folder


def commit_of(repository: Path, name: str) -> str:
    return run("git", "-C", repository, "rev-parse", name).stdout.strip()


def git(repository: Path, *arguments: object, stdin: bytes = b"") -> bytes:
    """Run git, which must succeed; return its standard output."""
    done = subprocess.run(
        ["git", "-C", str(repository), *map(str, arguments)],
        input=stdin,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


def archive(
    source: object, commit: str, stem: Path
) -> subprocess.CompletedProcess[str]:
    settings = "spack_source and spack_commit"
    return run("bash", FILES / "archive.sh", source, commit, stem, settings)


def contents(stem: Path) -> dict[str, bytes]:
    """Return the content of each file of STEM.tar."""
    with tarfile.open(f"{stem}.tar") as packed:
        files = {name: packed.extractfile(name) for name in packed.getnames()}
        return {name: file.read() for name, file in files.items() if file}


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_commit_is_taken_from_a_repository_or_url_and_only_once(
    form: str, repository: Path, tmp_path: Path
) -> None:
    stem = tmp_path / "build" / "spack"
    commit = commit_of(repository, "HEAD")
    done = archive(form.format(repository), commit, stem)
    assert (done.returncode, done.stdout) == (0, f"{stem}.bundle: {commit}\n"), (
        done.stderr
    )
    assert contents(stem) == {"file": b"2"}
    bundle = stem.with_suffix(".bundle").read_bytes()
    again = archive("/nowhere", commit, stem)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert stem.with_suffix(".bundle").read_bytes() == bundle
    older = archive(form.format(repository), commit_of(repository, "HEAD~1"), stem)
    assert older.stdout != ""
    assert contents(stem) == {"file": b"1"}
    names = sorted(file.name for file in stem.parent.iterdir())
    assert names == ["spack.bundle", "spack.tar"]


def test_bundle_made_by_hand_is_taken_without_its_history(
    repository: Path, tmp_path: Path
) -> None:
    given, stem = tmp_path / "given.bundle", tmp_path / "spack"
    git(repository, "bundle", "create", "--quiet", given, "HEAD")
    head, older = (commit_of(repository, name) for name in ("HEAD", "HEAD~1"))
    done = archive(given, head, stem)
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(stem) == {"file": b"2"}
    git(repository, "init", "--quiet", "--bare", tmp_path / "other")
    git(tmp_path / "other", "bundle", "unbundle", f"{stem}.bundle")
    objects = git(
        tmp_path / "other", "cat-file", "--batch-all-objects", "--batch-check"
    )
    assert len(objects.splitlines()) == 3, "a commit, its tree and its file"
    assert older.encode() not in objects


def test_content_is_that_of_the_commit_where_a_repository_replaces_it(
    repository: Path, tmp_path: Path
) -> None:
    head, older = (commit_of(repository, name) for name in ("HEAD", "HEAD~1"))
    git(repository, "replace", head, older)
    assert archive(repository, head, tmp_path / "spack").returncode == 0
    assert contents(tmp_path / "spack") == {"file": b"2"}


# ---- Attacks: files that name the commit, with other content

EVIL = b"import os; os.system('evil')"


def forged_archive(repository: Path, commit: str) -> bytes:
    """Return an archive like that of `git archive`, with a file of the attacker's."""
    file = repository / "forged.tar"
    headers = {"comment": commit}
    with tarfile.open(file, "w", pax_headers=headers) as packed:
        member = tarfile.TarInfo("file")
        member.size = len(EVIL)
        packed.addfile(member, io.BytesIO(EVIL))
    content = file.read_bytes()
    assert (
        git(repository, "get-tar-commit-id", stdin=content).decode().strip() == commit
    )
    return content


def bundle_of(repository: Path, commit: str, *objects: str) -> bytes:
    """Return a bundle that names a commit, with those objects."""
    listed = "".join(f"{each}\n" for each in objects).encode()
    pack = git(repository, "pack-objects", "--stdout", "-q", stdin=listed)
    return f"# v2 git bundle\n{commit} refs/heads/pinned\n\n".encode() + pack


def forged_commit(repository: Path, commit: str) -> bytes:
    """Return a bundle whose header names the commit; its pack has another."""
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=EVIL).decode().strip()
    entry = f"100644 blob {blob}\tfile\n".encode()
    tree = git(repository, "mktree", stdin=entry).decode().strip()
    author = ("-c", "user.name=n", "-c", "user.email=m@localhost")
    other = git(repository, *author, "commit-tree", "-m", "2", tree)
    return bundle_of(repository, commit, other.decode().strip(), tree, blob)


def forged_file(repository: Path, commit: str) -> bytes:
    """Return a bundle with the commit and its tree; the file in it is another."""
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=EVIL).decode().strip()
    return bundle_of(repository, commit, commit, commit_of(repository, "HEAD:"), blob)


def flipped(repository: Path, commit: str) -> bytes:
    """Return a genuine bundle with one bit of its pack changed."""
    tree, blob = (commit_of(repository, name) for name in ("HEAD:", "HEAD:file"))
    content = bytearray(bundle_of(repository, commit, commit, tree, blob))
    content[-30] ^= 1
    return bytes(content)


CARRY = "carry over what playbooks/mirror.yml makes on a machine with internet"
CHANGE = "or change spack_source and spack_commit\n"


def test_bundle_of_these_attacks_is_accepted_when_it_is_genuine(
    repository: Path, tmp_path: Path
) -> None:
    commit = commit_of(repository, "HEAD")
    objects = (
        commit,
        commit_of(repository, "HEAD:"),
        commit_of(repository, "HEAD:file"),
    )
    for file in ("spack.bundle", "given.bundle"):
        (tmp_path / file).write_bytes(bundle_of(repository, commit, *objects))
    for source, name in (("/nowhere", "spack"), (tmp_path / "given.bundle", "other")):
        done = archive(source, commit, tmp_path / name)
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(tmp_path / name) == {"file": b"2"}


@pytest.mark.parametrize("forge", [forged_commit, forged_file, flipped])
def test_carried_over_bundle_with_changed_content_is_refused(
    forge: Callable[[Path, str], bytes], repository: Path, tmp_path: Path
) -> None:
    commit, stem = commit_of(repository, "HEAD"), tmp_path / "b" / "spack"
    stem.parent.mkdir()
    stem.with_suffix(".bundle").write_bytes(forge(repository, commit))
    done = archive(repository, commit, stem)
    assert done.returncode == 1
    assert (
        f"commit {commit}: {stem}.bundle names this commit, but does not hold its "
        f"files: it was changed or is damaged; remove it, and {CARRY}\n" in done.stderr
    )
    assert [file.name for file in stem.parent.iterdir()] == ["spack.bundle"]


def test_carried_over_archive_with_the_right_comment_is_not_used(
    repository: Path, tmp_path: Path
) -> None:
    commit, stem = commit_of(repository, "HEAD"), tmp_path / "spack"
    for suffix in (".tar", ".bundle"):
        stem.with_suffix(suffix).write_bytes(forged_archive(repository, commit))
    done = archive("/nowhere", commit, stem)
    assert done.returncode == 1
    assert (
        f"commit {commit}: cannot be fetched from /nowhere, and {stem}.bundle is no "
        f"git bundle; {CARRY}; {CHANGE}" in done.stderr
    )
    assert archive(repository, commit, stem).returncode == 0
    assert contents(stem) == {"file": b"2"}


def test_given_archive_with_the_right_comment_is_refused(
    repository: Path, tmp_path: Path
) -> None:
    commit, given = commit_of(repository, "HEAD"), tmp_path / "given.tar"
    given.write_bytes(forged_archive(repository, commit))
    done = archive(given, commit, tmp_path / "b" / "spack")
    assert done.returncode == 1
    assert done.stderr == (
        f"commit {commit}: expected a git bundle, found another file: {given}; an "
        "archive does not prove its content; make a bundle in a clone that has the "
        f"commit checked out: `git bundle create spack.bundle HEAD`; {CHANGE}"
    )
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize("forge", [forged_commit, forged_file, flipped])
def test_given_bundle_with_changed_content_is_refused(
    forge: Callable[[Path, str], bytes], repository: Path, tmp_path: Path
) -> None:
    commit, given = commit_of(repository, "HEAD"), tmp_path / "given.bundle"
    given.write_bytes(forge(repository, commit))
    done = archive(given, commit, tmp_path / "b" / "spack")
    assert done.returncode == 1
    assert (
        f"commit {commit}: the bundle {given}, of commit {commit}, does not hold this "
        "commit with all its files; make it again" in done.stderr
    )
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{}", "git cannot take it from the repository {}; fetch it there"),
        ("file://{}", "cannot be fetched from file://{}, and {stem}.bundle is missing"),
        ("{}/file", "expected a git bundle, found another file: {}/file; an archive"),
    ],
)
def test_commit_that_is_not_there_is_named(
    source: str, problem: str, repository: Path, tmp_path: Path
) -> None:
    wanted, stem = "0123456789" * 4, tmp_path / "b" / "spack"
    done = archive(source.format(repository), wanted, stem)
    assert done.returncode == 1
    assert f"commit {wanted}: {problem.format(repository, stem=stem)}" in done.stderr
    assert CHANGE in done.stderr
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.parametrize("name", ["HEAD", "v1.2.2", "0123456"])
def test_commit_is_written_in_full(name: str, repository: Path, tmp_path: Path) -> None:
    done = archive(repository, name, tmp_path / "spack")
    expected = f"commit {name}: expected 40 lower-case hex digits; {CHANGE[3:]}"
    assert (done.returncode, done.stderr) == (1, expected)
