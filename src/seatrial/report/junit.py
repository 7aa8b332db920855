"""The judgement as JUnit XML, for the systems that show and count tests."""

from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from seatrial.judge.judge import Finding, Judgement
from seatrial.judge.waived import WAIVED
from seatrial.report.render import text
from seatrial.runs.closed_run import Run


def _outcome(finding: Finding) -> str:
    """Return the JUnit element of a finding; '' of a pass.

    An undecided finding is an error: no reader of JUnit takes an error for a pass. What
    is not shown is a failure or an error, as the exit status of `seatrial judge`. What
    is waived is skipped: it is neither passed nor failed.
    """
    if WAIVED in finding.flags:
        return "skipped"
    borne = "failure" if finding.bears == "seller" else "error"
    outcomes = {"fail": "failure", "not shown": borne, "undecided": "error"}
    return {**outcomes, "skipped": "skipped"}.get(finding.verdict, "")


def junit_xml(run: Run, judgement: Judgement) -> bytes:
    """Write one test case per finding; a run without any finding is an error."""
    counts = Counter(map(_outcome, judgement.findings))
    totals = {
        "tests": str(len(judgement.findings)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
    }
    root = ET.Element("testsuites", _attributes(name="seatrial", **totals))
    suite = ET.SubElement(
        root, "testsuite", _attributes(**_suite(run, judgement, totals))
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in {
        "run": judgement.run,
        "system": judgement.system,
        "campaign": judgement.campaign,
        "verdict": judgement.verdict,
        "convicted": " ".join(judgement.convicted),
        "not_shown": " ".join(judgement.not_shown),
        "bears": judgement.bears,
        "suspects": ", ".join(judgement.suspects),
        "digest": judgement.digest,
        "demonstration": str(bool(run.manifest.get("demonstration"))).lower(),
        "model": str(bool(run.manifest.get("model"))).lower(),
        "replay": str(judgement.replay).lower(),
    }.items():
        ET.SubElement(properties, "property", _attributes(name=name, value=value))
    for finding in judgement.findings:
        _test_case(suite, finding)
    if not judgement.findings:
        own = {"classname": "run", "name": "judgement"}
        case = ET.SubElement(suite, "testcase", own)
        error = {"message": "nothing was judged", "type": "run"}
        ET.SubElement(case, "error", error)
        for element in (root, suite):
            element.attrib.update(tests="1", errors="1")
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _suite(run: Run, judgement: Judgement, totals: dict[str, str]) -> dict[str, str]:
    name = f"{judgement.system}.{judgement.campaign}"
    suite = {"name": f"{name}.replay" if judgement.replay else name, **totals}
    when = text.moment(run.manifest.get("started"))
    if when is not None:
        suite["timestamp"] = f"{when:%Y-%m-%dT%H:%M:%S}"
    seconds = text.span(run.manifest.get("started"), run.manifest.get("ended"))
    if seconds is not None:
        suite["time"] = f"{seconds:.3f}"
    return suite


def _test_case(suite: ET.Element, finding: Finding) -> None:
    parts = (finding.case, finding.environment, finding.metric, finding.place)
    name = " / ".join(part for part in parts if part) or finding.kind
    own = _attributes(classname=finding.check or finding.kind, name=name)
    case = ET.SubElement(suite, "testcase", own)
    if outcome := _outcome(finding):
        details = {"message": finding.reason}
        if WAIVED in finding.flags:
            details["message"] = f"{WAIVED}; {finding.verdict}: {finding.reason}"
        elif finding.verdict == "not shown":
            details["type"] = finding.verdict
        elif finding.verdict != "skipped":
            details["type"] = finding.kind
        ET.SubElement(case, outcome, _attributes(**details))
    if finding.value is not None or finding.accepted is not None:
        output = ET.SubElement(case, "system-out")
        output.text = text.clean(", ".join(_numbers(finding)))


def _numbers(finding: Finding) -> Iterator[str]:
    """Yield the value of a finding, its limits, and what they count."""
    if finding.value is not None:
        yield f"{finding.value:.9g} {finding.unit}"
    if finding.accepted is not None:
        yield f"accepted {finding.accepted:.9g}, rejected {finding.limit:.9g}"
    elif finding.limit is not None:
        yield f"limit {finding.limit:.9g}"
    yield f"{finding.direction} is better"
    yield f"n={finding.n}"


def _attributes(**values: str) -> dict[str, str]:
    return {name: text.clean(value) for name, value in values.items()}
