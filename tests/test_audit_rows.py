"""Verdicts of an audit: declaration, peers, what waits for a reboot, what is silent."""

from pathlib import Path

import pytest
from fake_hardware import raw_of, write_node

from seatrial.audit.audit import audit, exit_status
from seatrial.audit.collect import Collected
from seatrial.audit.expected import Expected
from seatrial.audit.hardware_file import HardwareFile
from seatrial.audit.raw import Block
from seatrial.audit.reading import Reading
from seatrial.audit.rows import NodeClass, Row, rows_of
from seatrial.errors import Exit

SOURCE = Block("x", "mstflint", "4.21", 0, "", "raw")
ADDRESS = "0000:41:00.0"
FIRMWARE = ("hca", "rail0", "firmware")


def reading(key: str, value: str | None, **more: str | None) -> Reading:
    """Return a reading of the HCA `rail0`, or of `kind`."""
    kind = more.pop("kind", None) or "hca"
    subject = ADDRESS if kind == "hca" else kind
    reason = more.pop("reason", None) or ""
    return Reading(kind, subject, key, value, SOURCE, reason=reason, **more)


def judged(
    nodes: dict[str, list[Reading]],
    *declared: tuple[str, str, str, str],
    names: tuple[str, ...] = (),
    **missing: str,
) -> list[Row]:
    """Return the rows of a class with one rail."""
    expected = tuple(Expected(*one) for one in declared)
    members = names or (*nodes, *missing)
    rails = {f"{ADDRESS}/1": "rail0"}
    return rows_of(NodeClass("cpu", members, expected, rails), nodes, missing)


@pytest.mark.parametrize(
    ("value", "pending", "verdict"),
    [
        ("20.43.2566", None, "ok"),
        ("20.43.2566", "20.43.2566", "ok"),
        ("20.43.2566", "20.99.1000", "pending"),  # it leaves the declaration at boot
        ("20.42.1000", "20.43.2566", "pending"),
        ("20.42.1000", None, "drift"),
        ("20.42.1000", "20.42.9999", "drift"),
        (None, None, "unknown"),
    ],
)
def test_value_is_compared_with_the_declared_one(
    value: str | None, pending: str | None, verdict: str
) -> None:
    one = reading("firmware", value, pending=pending)
    (row,) = judged({"cn1": [one]}, (*FIRMWARE, "20.43.2566"))
    assert (row.verdict, row.actual, row.pending) == (verdict, value, pending)
    assert (row.subject, row.declared, row.tool) == ("rail0", "20.43.2566", "mstflint")
    assert row.sha256 == SOURCE.sha256


def test_undeclared_value_is_never_drift() -> None:
    (row,) = judged({"cn1": [reading("firmware", "1.0")]})
    assert (row.verdict, row.declared) == ("ok", None)
    (row,) = judged({"cn1": [reading("firmware", "1.0", pending="2.0")]})
    assert row.verdict == "pending"


def test_node_that_differs_from_its_peers_is_odd() -> None:
    nodes = {f"cn{i}": [reading("firmware", "1.0")] for i in range(4)}
    nodes["cn3"] = [reading("firmware", "1.1")]
    rows = judged(nodes)
    assert [row.verdict for row in rows] == ["ok", "ok", "ok", "odd"]
    assert rows[0].peers == {"1.0": 3, "1.1": 1}


def test_without_a_majority_all_are_odd() -> None:
    nodes = {f"cn{i}": [reading("firmware", f"1.{i % 2}")] for i in range(4)}
    assert {row.verdict for row in judged(nodes)} == {"odd"}


def test_own_values_of_nodes_are_not_odd() -> None:
    nodes = {f"cn{i}": [reading("guid", f"{i}")] for i in range(3)}
    assert {row.verdict for row in judged(nodes)} == {"ok"}


def test_unknown_peers_do_not_count() -> None:
    nodes = {"cn1": [reading("firmware", "1.0")], "cn2": [reading("firmware", None)]}
    rows = judged(nodes)
    assert [row.verdict for row in rows] == ["ok", "unknown"]
    assert rows[0].peers == {"1.0": 1, "unknown": 1}


def test_link_below_what_both_ends_can_do_is_drift() -> None:
    (row,) = judged({"cn1": [reading("pcie.width", "8", able="16", reason="at a - b")]})
    assert (row.verdict, row.declared, row.reason) == ("drift", "16", "at a - b")


def test_declared_width_wins_over_the_able_one() -> None:
    one = reading("pcie.width", "8", able="16")
    (row,) = judged({"cn1": [one]}, ("hca", "rail0", "pcie.width", "8"))
    assert row.verdict == "ok"


def test_hca_that_is_gone() -> None:
    dead, other = reading("device", "none"), reading("thp", "never", kind="memory")
    (row,) = judged({"cn1": [dead]})
    assert row.verdict == "absent"
    gone, kept = judged({"cn1": [other]}, (*FIRMWARE, "1.0"))
    assert (gone.verdict, gone.reason) == ("absent", "no HCA at its address")
    assert kept.verdict == "ok"


def test_declared_key_that_no_source_tells() -> None:
    row, _ = judged({"cn1": [reading("psid", "x")]}, (*FIRMWARE, "1.0"))
    assert (row.verdict, row.reason) == ("unknown", "no source tells it")


def test_argument_that_the_kernel_did_not_get() -> None:
    line = reading("command_line", "ro", kind="kernel")
    declared = ("kernel", "kernel", "argument.nosmt")
    row, _ = judged({"cn1": [line]}, (*declared, "present"))
    assert (row.verdict, row.actual) == ("drift", "absent")
    row, _ = judged({"cn1": [line]}, (*declared, "absent"))
    assert row.verdict == "ok"


def test_node_that_did_not_answer_is_unknown() -> None:
    answer = {"cn1": [reading("firmware", "1.0")]}
    rows = judged(answer, (*FIRMWARE, "1.0"), cn2="not asked, Slurm says down*")
    assert [row.verdict for row in rows] == ["ok", "unknown"]
    assert rows[1].reason == "not asked, Slurm says down*"
    rows = judged(answer, names=("cn1", "cn3"))
    assert (rows[1].key, rows[1].verdict, rows[1].reason) == (
        "release",
        "unknown",
        "no answer",
    )


def test_each_rail_of_an_hca_has_its_port_and_the_hca() -> None:
    rails = {f"{ADDRESS}/1": "rail0", f"{ADDRESS}/2": "rail1"}
    readings = [
        reading("firmware", "1.0"),
        Reading("hca", f"{ADDRESS}/1", "state", "ACTIVE", SOURCE),
        Reading("hca", f"{ADDRESS}/2", "state", "DOWN", SOURCE),
    ]
    rows = rows_of(NodeClass("cpu", ("cn1",), (), rails), {"cn1": readings}, {})
    found = [(row.subject, row.key, row.actual) for row in rows]
    assert found == [
        ("rail0", "firmware", "1.0"),
        ("rail0", "state", "ACTIVE"),
        ("rail1", "firmware", "1.0"),
        ("rail1", "state", "DOWN"),
    ]


def test_later_source_wins_unless_it_is_silent() -> None:
    more = [reading("psid", "15b3:0061"), reading("psid", "MT_1")]
    more += [reading("psid", None, reason="mstflint: needs root")]
    (row,) = judged({"cn1": more})
    assert (row.actual, row.verdict) == ("MT_1", "ok")


def status(*rows: tuple[str, str | None]) -> Exit:
    """Return the exit status of rows with a verdict and a declared value."""
    verdicts = {
        "ok": "1.0",
        "drift": "2.0",
        "unknown": None,
    }
    nodes = {
        f"cn{i}": [reading("psid", verdicts[name])] for i, (name, _) in enumerate(rows)
    }
    declared = [("hca", "rail0", "psid", "1.0")] if rows[0][1] else []
    return exit_status(judged(nodes, *declared))


def test_exit_status() -> None:
    assert status(("ok", "1.0")) == Exit.PASS
    assert status(("unknown", "1.0"), ("drift", "1.0")) == Exit.FAILED
    assert status(("ok", "1.0"), ("unknown", "1.0")) == Exit.UNDECIDED
    assert status(("unknown", None)) == Exit.PASS


def test_damaged_output_of_a_node_is_unknown_with_its_reason(tmp_path: Path) -> None:
    raw = raw_of(write_node(tmp_path))
    nodes = ["cn1", "cn2", "cn3"]
    collected = Collected({"cpu": nodes}, {"cn1": raw, "cn2": raw[:-5]})
    collected.errors = ["cpu: srun: error: cn3: task 2: Killed"]
    rows = audit(collected, HardwareFile(tmp_path / "none.yml", ["cpu"]))
    silent = {
        row.node: row.reason
        for row in rows
        if row.node != "cn1" and row.verdict == "unknown"
    }
    assert silent == {
        "cn2": "output of the node ends early",
        "cn3": "cpu: srun: error: cn3: task 2: Killed",
    }
    assert sum(row.node == "cn1" for row in rows) > 20


def test_declared_parameter_without_root_is_unknown_for_that_reason() -> None:
    silent = reading("nvconfig.all", None, reason="mstconfig: needs root")
    declared = ("hca", "rail0", "nvconfig.SRIOV_EN", "False(0)")
    rows = {row.key: row for row in judged({"cn1": [silent]}, declared)}
    assert rows["nvconfig.SRIOV_EN"].verdict == "unknown"
    assert rows["nvconfig.SRIOV_EN"].reason == "mstconfig: needs root"
