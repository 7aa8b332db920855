"""The agent on the controller does what one user may ask, and nothing else."""

import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from action_states import NODES, TODAY, alarm, state
from fake_scontrol import FakeSlurm

from seatrial.nightly import slurm_actions
from seatrial.nightly.actions import Action, act
from seatrial.nightly.slurm_actions import user_name

ROLE = Path(__file__).parents[1] / "playbooks" / "roles" / "nightly_agent"
AGENT = ROLE / "files" / "seatrial-nightly-agent"
TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"
NOBODY, SOMEBODY = 65534, 12345

# Forged requests belong to other users; `make test` runs as root, as the lab needs it.
# Forged requests belong to other users. `make test` runs as root: the lab needs it too.
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of other users")


class Site:
    """A spool folder, a configuration and Slurm; `nobody` may ask."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spool = folder, folder / "spool"
        self.slurm = FakeSlurm(folder, NODES)
        self.spool.mkdir()
        os.chown(self.spool, 0, NOBODY)
        self.spool.chmod(0o1770)
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        self.config: dict[str, Any] = {
            "user": "nobody",
            "nodes": ["cn01", "cn02", "cn03"],
            "mode": "reservation",
            "night": 1,
            "at_once": 1,
            "scontrol": str(self.slurm.folder / "scontrol"),
            "sinfo": str(self.slurm.folder / "sinfo"),
            "slurm_conf": "",
            "off": str(folder / "off"),
            "spool": str(self.spool),
            "state": str(self.state),
        }

    def write(self, name: str, content: bytes, user: int = NOBODY) -> Path:
        """Write a file into the spool folder as another user."""
        folder = os.open(self.spool, os.O_RDONLY)
        child = os.fork()
        if not child:
            status = 1
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(user)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                os.write(os.open(name, flags, 0o644, dir_fd=folder), content)
                status = 0
            finally:
                os._exit(status)
        os.close(folder)
        assert os.waitpid(child, 0)[1] == 0
        return self.spool / name

    def ask(
        self,
        verb: str = "quarantine",
        token: str = TOKEN,
        user: int = NOBODY,
        **more: Any,
    ) -> Path:
        request: dict[str, Any] = {"verb": verb, "node": "cn01", "token": token}
        request |= {
            "alarm": "a-cn01",
            "mode": self.config["mode"],
            "time": int(time.time()),
            **more,
        }
        name = f"{verb}-{token}.json"
        return self.write(name, json.dumps(request).encode(), user)

    def run(self, limit: Callable[[], None] | None = None, status: int = 0) -> str:
        config = self.folder / "config.json"
        config.write_text(json.dumps(self.config))
        done = subprocess.run(
            [sys.executable, "-I", AGENT, config],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=limit,
        )
        assert done.returncode == status, done.stderr
        return done.stderr

    def note(
        self, event: str, node: str, age_s: float = 0.0, token: str = OTHER
    ) -> None:
        """Write an entry of the agent's ledger."""
        entry = {"event": event, "node": node, "token": token, "alarm": "a"}
        entry |= {"mode": self.config["mode"]}
        line = json.dumps({**entry, "time": time.time() - age_s})
        with (self.state / "ledger.jsonl").open("a") as file:
            file.write(line + "\n")

    def events(self) -> list[tuple[str, str]]:
        lines = (self.state / "ledger.jsonl").read_text().splitlines()
        return [(one["event"], one["node"]) for one in map(json.loads, lines)]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_node_is_reserved_renewed_and_released(site: Site) -> None:
    site.ask()
    assert "cn01 is out of service" in site.run()
    assert list(site.spool.iterdir()) == []
    assert site.slurm.calls == [
        [
            "create",
            "reservation",
            "ReservationName=seatrial-cn01",
            "Nodes=cn01",
            "StartTime=now",
            "Duration=7-00:00:00",
            "Flags=MAINT,FLEX,IGNORE_JOBS",
            "Users=nobody",
        ]
    ]
    site.ask()
    assert "stays out" in site.run()
    assert site.slurm.calls[-1][-1] == "EndTime=now+7days"
    site.ask("release")
    assert "back in service" in site.run()
    assert site.slurm.reservations == {}
    assert site.events() == [("quarantined", "cn01"), ("released", "cn01")]
    site.ask()
    assert "its token was used before" in site.run()
    assert len(site.slurm.calls) == 3


def test_a_drain_has_the_token_and_is_ended_by_a_person(site: Site) -> None:
    site.config["mode"] = "drain"
    site.ask()
    site.run()
    assert site.slurm.load()["nodes"]["cn01"] == [
        "drained",
        f"seatrial:1:{TOKEN} a-cn01",
    ]
    site.ask()
    assert "stays out" in site.run()
    site.ask("release")
    assert "a person ends a drain" in site.run()
    assert len(site.slurm.calls) == 1
    site.slurm.node("cn01", "drained", "memory")
    site.ask(token=OTHER)
    assert "drained already" in site.run()
    assert site.events()[-1] == ("gone", "cn01")
    assert len(site.slurm.calls) == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"node": "cn04"}, "not allowed"),
        ({"node": "cn01;reboot"}, "a wrong node"),
        ({"node": "cn[01-03]"}, "a wrong node"),
        ({"node": "cn01\n"}, "a wrong node"),
        ({"node": "--help"}, "a wrong node"),
        ({"node": ["cn01"]}, "a wrong node"),
        ({"alarm": "a b"}, "a wrong alarm"),
        ({"alarm": "a" * 101}, "a wrong alarm"),
        ({"alarm": "a" * 5000}, "larger than 4096"),
        ({"token": "../../etc/passwd"}, "a wrong token"),
        ({"token": OTHER}, "its name is not"),
        ({"token": "0" * 15}, "a wrong token"),
        ({"verb": "reboot"}, "a wrong verb"),
        ({"verb": "release"}, "its name is not"),
        ({"time": int(time.time()) - 4000}, "older than an hour"),
        ({"time": int(time.time()) + 10_000}, "from the future"),
        ({"time": True}, "no whole number"),
        ({"time": "now"}, "no whole number"),
        ({"mode": "drain"}, "expected the mode"),
        ({"more": 1}, "with the keys"),
    ],
)
def test_contents_that_are_refused(site: Site, more: dict[str, Any], why: str) -> None:
    content: dict[str, Any] = {"verb": "quarantine", "node": "cn01", "token": TOKEN}
    content |= {"alarm": "a", "mode": "reservation", "time": int(time.time())}
    site.write(f"quarantine-{TOKEN}.json", json.dumps({**content, **more}).encode())
    assert why in site.run()
    assert (site.slurm.calls, list(site.spool.iterdir())) == ([], [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"\xff{", "no JSON"),
        (b"[" * 4000, "no JSON"),
        (b"[]", "expected an object"),
        (b'"quarantine"', "expected an object"),
        (b"NaN", "expected an object"),
        (b'{"verb": "release", "verb": "quarantine"}', "a key twice"),
        (b" " * 5000, "larger than 4096"),
    ],
)
def test_texts_that_are_no_requests(site: Site, content: bytes, why: str) -> None:
    site.write(f"quarantine-{TOKEN}.json", content)
    assert f"refused: {why}" in site.run()
    assert (site.slurm.calls, list(site.spool.iterdir())) == ([], [])


def forge_symlink(site: Site, file: Path) -> None:
    file.rename(site.folder / "kept")
    file.symlink_to(site.folder / "kept")


def forge_hard_link(site: Site, file: Path) -> None:
    (site.folder / "kept").hardlink_to(file)


def forge_fifo(site: Site, file: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    os.chown(file, NOBODY, NOBODY)


def forge_old(site: Site, file: Path) -> None:
    os.utime(file, (time.time() - 4000,) * 2)


def forge_future(site: Site, file: Path) -> None:
    os.utime(file, (time.time() + 4000,) * 2)


def forge_name(site: Site, file: Path) -> None:
    file.rename(file.with_name(f"reboot-{TOKEN}.json"))


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (forge_symlink, "Too many levels of symbolic links"),
        (forge_hard_link, "it has 2 links"),
        (forge_fifo, "no regular file"),
        (forge_old, "older than an hour"),
        (forge_future, "from the future"),
        (forge_name, "a wrong name"),
    ],
)
def test_files_that_are_refused(
    site: Site, forge: Callable[[Site, Path], None], why: str
) -> None:
    forge(site, site.ask())
    said = site.run()
    assert "refused: " in said
    assert why in said
    assert (site.slurm.calls, list(site.spool.iterdir())) == ([], [])


@pytest.mark.parametrize("user", [0, SOMEBODY])
def test_requests_of_other_users_are_refused(site: Site, user: int) -> None:
    site.ask(user=user)
    assert f"refused: it belongs to uid {user}" in site.run()
    assert (site.slurm.calls, list(site.spool.iterdir())) == ([], [])


def test_a_folder_and_a_file_that_is_being_written_stay(site: Site) -> None:
    begun = site.write(".quarantine", b"{")
    (site.spool / f"quarantine-{TOKEN}.json").mkdir()
    assert "refused: no regular file" in site.run()
    assert begun.exists()
    os.utime(begun, (time.time() - 4000,) * 2)
    site.run()
    assert not begun.exists()


def test_a_release_needs_a_token_of_the_ledger(site: Site) -> None:
    site.slurm.reserve("cn01", "nobody")
    site.ask("release")
    assert "this token took no such node out" in site.run()
    site.slurm.set(reservations={})
    site.ask()
    site.run()
    site.ask("release", OTHER)
    assert "this token took no such node out" in site.run()
    site.ask("release", node="cn02")
    assert "this token took no such node out" in site.run()
    assert len(site.slurm.calls) == 1


def test_a_reservation_that_was_replaced_is_left_alone(site: Site) -> None:
    site.ask()
    site.run()
    site.slurm.reserve("cn01", "admin")
    site.ask("release")
    assert "not out as this agent left it" in site.run()
    assert site.events()[-1] == ("gone", "cn01")
    site.slurm.node("cn01", "idle")
    site.ask(token=OTHER)
    assert "has a reservation" in site.run()
    assert len(site.slurm.calls) == 1


@pytest.mark.parametrize(
    ("state", "reason"),
    [("drained", "disk"), ("down*", "none"), ("maint", "none"), ("idle", "look")],
)
def test_a_node_that_others_took_out_stays(site: Site, state: str, reason: str) -> None:
    site.config["mode"] = "drain"
    site.slurm.node("cn01", state, reason)
    site.ask()
    assert f"cn01 is {state} already" in site.run()
    assert site.slurm.calls == []


def test_caps(site: Site) -> None:
    site.slurm.node("cn03", "drained", "disk")
    site.ask()
    assert "1 allowed nodes are out already" in site.run()
    site.config["at_once"] = 3
    site.ask()
    site.ask(token=OTHER, node="cn02")
    said = site.run()
    assert "cn01 is out of service" in said
    assert "1 taken out within 12 hours" in said
    assert len(site.slurm.calls) == 1


def test_a_cap_of_a_night_ends(site: Site) -> None:
    site.config["at_once"] = 3
    site.note("quarantined", "cn03", 11 * 3600)
    site.note("released", "cn03")
    site.ask()
    assert "1 taken out within 12 hours" in site.run()
    (site.state / "ledger.jsonl").unlink()
    site.note("quarantined", "cn03", 13 * 3600)
    site.ask()
    assert "cn01 is out of service" in site.run()


def test_the_off_switch_and_a_silent_slurm(site: Site) -> None:
    (site.folder / "off").touch()
    site.ask()
    assert "refused: the off-switch is set" in site.run()
    (site.folder / "off").unlink()
    site.slurm.set(silent=True)
    site.ask()
    assert "Unable to contact slurm controller" in site.run()
    site.slurm.set(silent=False, nodes={"cn01": ["idle", ""]})
    site.ask()
    assert "unclear" in site.run()
    site.slurm.set(nodes={}, reservations={})
    site.ask()
    assert "sinfo names no node" in site.run()
    assert (site.slurm.calls, site.events()) == ([], [])


def test_a_full_disk_stops_it(site: Site) -> None:
    for _ in range(40):
        site.note("released", "cn03")
    ledger = site.state / "ledger.jsonl"
    before = ledger.read_bytes()
    most = len(before) + 20
    assert site.slurm.file.stat().st_size < most
    site.ask()
    said = site.run(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    assert "the ledger cannot be written" in said
    assert (site.slurm.calls, ledger.read_bytes()) == ([], before)


def test_a_request_that_is_withdrawn_while_it_is_read_is_not_done(site: Site) -> None:
    program: dict[str, Any] = {"__name__": "agent"}
    exec(compile(AGENT.read_text(), AGENT, "exec"), program)
    agent, file = program["Agent"](site.config), site.ask()
    request = agent.read(file.name)

    def withdrawn_meanwhile(name: str) -> Any:
        file.unlink()
        return request

    agent.read = withdrawn_meanwhile
    with pytest.raises(program["Refused"], match="withdrawn"):
        agent.handle(file.name)
    assert site.slurm.calls == []


def test_a_crash_between_intent_and_act_frees_the_node(site: Site) -> None:
    site.note("quarantined", "cn01", 13 * 3600)
    with (site.state / "ledger.jsonl").open("a") as file:
        file.write('{"event": "quar')
    site.ask()
    assert "cn01 is out of service" in site.run()
    events = ["quarantined", "gone", "quarantined"]
    assert site.events() == [(event, "cn01") for event in events]


def test_a_ledger_that_is_damaged_stops_it(site: Site) -> None:
    (site.state / "ledger.jsonl").write_text("{\n")
    file = site.ask()
    assert "nothing is done: the ledger is damaged" in site.run(status=1)
    assert file.exists()


@pytest.mark.parametrize(
    ("folder", "mode"), [("spool", 0o1777), ("spool", 0o0770), ("state", 0o750)]
)
def test_folders_that_others_can_change_stop_it(
    site: Site, folder: str, mode: int
) -> None:
    (site.folder / folder).chmod(mode)
    assert f"mode {mode:o}; expected" in site.run(status=1)


@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o600), (0, 0o666)])
def test_a_configuration_that_others_can_change_stops_it(
    site: Site, owner: int, mode: int
) -> None:
    site.run()
    config = site.folder / "config.json"
    os.chown(config, owner, owner)
    config.chmod(mode)
    assert "expected a file of root" in site.run(status=1)


def test_the_role_writes_the_configuration_that_the_program_reads(site: Site) -> None:
    template = (ROLE / "templates" / "nightly-agent.json.j2").read_text()
    assert set(re.findall(r"'(\w+)':", template)) == site.config.keys()


@pytest.mark.parametrize("mode", ["reservation", "drain"])
def test_the_driver_and_the_agent_understand_each_other(
    site: Site, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.config.update(user=user_name(), mode=mode)
    monkeypatch.setattr(slurm_actions, "_LOOK_S", 0.05)
    monkeypatch.setenv("PATH", f"{site.slurm.folder}:{os.environ['PATH']}")

    def night(*, closed: bool) -> list[Action]:
        """Act, while the timer of the agent runs."""
        stop = threading.Event()

        def timer() -> None:
            while not stop.wait(0.05):
                if list(site.spool.glob("[!.]*")):
                    site.run()

        thread = threading.Thread(target=timer)
        thread.start()
        settings = {"action": mode, "spool": site.spool}
        try:
            return act(
                state(site.folder, alarm("cn02", closed=closed), **settings), TODAY
            )
        finally:
            stop.set()
            thread.join()

    (made,) = night(closed=False)
    assert made.done, made
    renewed, (freed,) = night(closed=False), night(closed=True)
    assert [str(one) for one in renewed if not one.done] == []
    assert freed.done is (mode == "reservation"), freed
    assert site.slurm.calls[0][0] == ("update" if mode == "drain" else "create")
    assert list(site.spool.iterdir()) == []
