"""An acceptance in the lab: a stability phase, an exchanged node, a waiver, signatures.

The phase lasts ten minutes, has faults of three causes, and its driver is killed. A
node fails in it and comes back with another serial number. Sweeps before and after
measure the old hardware and the new.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Lab
from lab_phase import NEW, OLD, phase_with_faults, serial_number, sweep
from lab_runs import results_of, wait_idle
from protocols import PEOPLE, make_site, seatrial, sign, state, waive, work_at

from seatrial.runs.closed_run import Run, load_run
from seatrial.stability.phase import Phase, phase_of_run

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CRITERIA = """
schema: 1
risks: {seller: 0.1, buyer: 0.1}
signatures: {vendor: 1, customer: 1, witness: 1}
defaults: {kind: promised, document: the lab, clause: '4.2'}
criteria:
  - kind: stability
    availability: {at_least: 0.5}
    unobserved: 0.2
  - kind: stability
    name: many failures
    mtbf: {accepted: 60 h, rejected: 20 h}
    burst: 1 min
    unobserved: 0.2
  - check: OsNoise
    model: every
    optional: true
    limits:
      os_noise: 100 %
      os_noise_core: 100 %
      detour_p99_9: 10000000 us
      detour_max: 10000000 us
"""
EVIDENCE = {
    "node": "broken fan",
    "network": "No route to host",
    "application": "Segmentation fault",
}


@dataclass(frozen=True)
class Acceptance:
    """The measured runs below `home`; `page` is the live page before the kill."""

    folder: Path
    home: Path
    page: str

    @property
    def run(self) -> Run:
        """The run of the stability phase."""
        return load_run(self.home / "results" / "lab" / "phase")

    @property
    def phase(self) -> Phase:
        phase = phase_of_run(self.run)
        assert phase is not None
        return phase


@pytest.fixture(scope="module")
def acceptance(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Acceptance]:
    """All that is measured, at a site whose parties have keys."""
    folder = tmp_path_factory.mktemp("acceptance")
    home = make_site(folder)
    (home / "reference-data" / "lab" / "criteria.yaml").write_text(CRITERIA)
    lab.ssh("head", f"rm -rf {results_of(lab)}")
    with serial_number(lab):
        sweep(lab, "before", home / "results")
        page = phase_with_faults(lab, home / "results")
        sweep(lab, "after", home / "results")
    wait_idle(lab, 4)
    with pytest.MonkeyPatch.context() as patch:
        work_at(home, patch)
        yield Acceptance(folder, home, page)


def judged(*arguments: str) -> Any:
    """Judge runs; return the judgement, which is whole for every verdict."""
    return json.loads(seatrial("judge", *arguments, "--format", "json").stdout)


def test_the_phase_has_events_of_three_causes_after_a_kill(
    acceptance: Acceptance,
) -> None:
    phase = acceptance.phase
    assert len(acceptance.run.manifest["starts"]) == 2
    evidence: dict[str, str] = {}
    for event in phase.events(60.0):
        told = f"{event.name} {event.words}: {'; '.join(event.evidence)}\n"
        evidence[event.cause] = evidence.get(event.cause, "") + told
    print(json.dumps(evidence, indent=1), phase.hours, phase.load, sep="\n")
    for cause, words in EVIDENCE.items():
        assert words in evidence.get(cause, ""), cause
    assert phase.hours.down > 0
    assert phase.journal.seconds > 9 * 60
    assert "broken fan" in acceptance.page, "the live page has the events so far"


def test_the_phase_fails_by_its_failures_and_not_by_the_lost_node(
    acceptance: Acceptance,
) -> None:
    judgement = judged("lab/phase")
    found = judgement["findings"]
    findings = {one["metric"]: one for one in found if one["kind"] == "stability"}
    assert findings["availability"]["verdict"] == "pass"
    assert findings["mtbf"]["verdict"] == "fail", "three failures in ten minutes"
    assert judgement["verdict"] == "fail"
    verdicts = {node["name"]: node["verdict"] for node in judgement["nodes"]}
    assert verdicts == dict.fromkeys(("cn01", "cn02", "cn03", "cn04"), "pass")
    (lost,) = [one for one in found if one["place"] == "cn03"]
    assert (lost["kind"], lost["verdict"]) == ("inventory", "pass"), lost["reason"]


def test_the_exchanged_node_joins_the_phase_and_is_measured_again(
    acceptance: Acceptance,
) -> None:
    (away,) = [one for one in acceptance.phase.journal.away if one.node == "cn03"]
    cases = [case for case in acceptance.run.cases if "cn03" in case.nodes]
    since = [case for case in cases if (case.start_time or 0.0) > away.span.end]
    assert {"pass"} <= {case.result for case in since}, "it runs jobs again"
    told = f"node cn03 was repaired (exchanged: node serial {OLD}, now {NEW}, "
    history = judged("lab/phase")["ledger"]["repairs"]
    assert [repair["node"] for repair in history] == ["cn03"]
    judgement = judged("lab/after", "--with", "lab/before")
    print(json.dumps(judgement, indent=1))
    assert judgement["verdict"] == "pass"
    noise = [one for one in judgement["findings"] if one["metric"] == "os_noise"]
    allocations = {(one["place"], one["n"]) for one in noise}
    assert {("cn01", 4), ("cn03", 2)} <= allocations
    assert ("cn03", 4) not in allocations, "its old numbers do not count"
    printed = seatrial("judge", "lab/after", "--with", "lab/before").stdout
    assert f"{told}at the start of run after)" in " ".join(printed.split())


def test_a_signed_waiver_makes_a_protocol_that_three_parties_sign(
    acceptance: Acceptance, tmp_path: Path
) -> None:
    run, folder = acceptance.run.path, acceptance.folder
    before = seatrial("judge", "lab/phase")
    assert before.exit_code == 1
    waive(run, folder / "keys" / "joe", "many failures")
    signature = run / "reasons.yaml.sig"
    kept = signature.rename(tmp_path / "reasons.yaml.sig")
    assert seatrial("judge", "lab/phase").exit_code == 1, "it is not signed"
    shutil.copy(kept, signature)
    waived = seatrial("judge", "lab/phase")
    assert waived.exit_code == 0
    assert "PASS WITH WAIVERS  lab, campaign stability-demo" in waived.stdout

    protocol = tmp_path / "protocol"
    made = seatrial("protocol", "lab/phase", "--out", protocol)
    assert made.exit_code == 0, made.output
    text = (protocol / "protocol.md").read_text()
    assert "**PASS WITH WAIVERS.**" in text
    for words in (*EVIDENCE.values(), "many failures", "cable is on order", NEW):
        assert words in text
    for role in PEOPLE:
        assert state(protocol) == ("INCOMPLETE", 3)
        assert sign(folder, protocol, role).exit_code == 0
    assert state(protocol) == ("COMPLETE", 0)
    by_other_programs(acceptance.home, protocol)
    (protocol / "ledger.jsonl").write_text("")
    assert state(protocol) == ("BROKEN", 1)


def by_other_programs(home: Path, protocol: Path) -> None:
    """Verify a protocol as its page says, without Seatrial."""
    listed = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(listed, cwd=protocol, check=True)
    signers = home / "reference-data" / "lab" / "allowed_signers"
    for role, name in PEOPLE.items():
        (signature,) = (protocol / "signatures").glob(f"{role}-*.sig")
        command = ["ssh-keygen", "-Y", "verify", "-f", str(signers)]
        command += ["-I", f"{name}@{role}.example", "-n", f"seatrial-protocol-{role}"]
        subprocess.run(
            [*command, "-s", str(signature)],
            input=(protocol / "SHA256SUMS").read_bytes(),
            check=True,
            capture_output=True,
        )
