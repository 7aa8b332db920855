"""The metrics file of the nights: Prometheus parses it, and dashboards find it."""

import errno
import json
import os
import re
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from nights_state import TODAY, Modelled, modelled
from prometheus_client.parser import text_string_to_metric_families

from seatrial.nightly.metrics_file import metrics_text, write_metrics
from seatrial.nightly.settings import Notify

HOME = Path(__file__).resolve().parents[1]
DASHBOARD = HOME / "reports" / "grafana-nightly.json"
NAME = re.compile(r"seatrial_nightly_\w+")
HOSTILE = 'a"} 1\nseatrial_nightly_nodes{x="\\'


@pytest.fixture
def lab(tmp_path: Path) -> Modelled:
    file = str(tmp_path / "exporter" / "seatrial.prom")
    return modelled(tmp_path / "lab", notify=Notify(metrics=file))


def file_of(lab: Modelled) -> Path:
    return Path(str(lab.notify.metrics))


def families(lab: Modelled) -> dict[str, Any]:
    """Return what Prometheus' own parser reads."""
    text = metrics_text(lab.state(), TODAY)
    return {one.name: one for one in text_string_to_metric_families(text)}


def values(lab: Modelled, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    samples = families(lab)[f"seatrial_nightly_{name}"].samples
    return {tuple(one.labels[key] for key in labels): one.value for one in samples}


def test_prometheus_parses_the_state(lab: Modelled) -> None:
    of_kind = values(lab, "alarms", "kind", "standing")
    assert {key: value for key, value in of_kind.items() if value} == {
        ("node", "open"): 1,
        ("node", "acknowledged"): 1,
        ("machine", "open"): 1,
        ("common", "open"): 1,
    }
    assert len(of_kind) == 8  # zeros too: a series that ends is no zero
    assert values(lab, "nodes", "state") == {
        ("learning",): 2,
        ("quarantined",): 1,
        ("unseen",): 2,
        ("watched",): 1,
    }
    assert values(lab, "coverage_ratio") == {(): 10 / 12}
    assert values(lab, "expected_false_alarms_per_year") == {(): 2.5}
    end = lab.state().last
    assert end is not None
    assert values(lab, "last_success_timestamp_seconds") == {(): end.timestamp()}


def test_each_family_is_a_gauge_with_help_and_a_system(lab: Modelled) -> None:
    for family in families(lab).values():
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        assert {one.labels["system"] for one in family.samples} == {"lab"}


def test_no_sample_has_a_timestamp(lab: Modelled) -> None:
    samples = [one for family in families(lab).values() for one in family.samples]
    assert samples
    assert {one.timestamp for one in samples} == {None}


def test_before_the_first_night_no_success_is_claimed(lab: Modelled) -> None:
    lab.nights, lab.alarms = 0, ()
    assert not families(lab)["seatrial_nightly_last_success_timestamp_seconds"].samples
    assert values(lab, "coverage_ratio") == {(): 0}


def test_a_hostile_name_is_a_label(lab: Modelled) -> None:
    lab.system = HOSTILE
    read = families(lab)
    assert len(read) == 5
    for family in read.values():
        assert {one.labels["system"] for one in family.samples} == {HOSTILE}


def test_the_file_is_readable_for_the_exporter(lab: Modelled) -> None:
    file = file_of(lab)
    file.parent.mkdir()
    state, mask = lab.state(), os.umask(0o077)
    try:
        assert write_metrics(state, TODAY) == []
    finally:
        os.umask(mask)
    assert file.read_text() == metrics_text(lab.state(), TODAY)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [*file.parent.iterdir()] == [file]


def test_without_a_declared_file_nothing_is_written(lab: Modelled) -> None:
    lab.notify = Notify()
    assert write_metrics(lab.state(), TODAY) == []


def test_a_link_left_there_is_not_followed(lab: Modelled, tmp_path: Path) -> None:
    file, other = file_of(lab), tmp_path / "other"
    file.parent.mkdir()
    other.write_text("mine")
    file.with_name(".seatrial.prom.new").symlink_to(other)
    write_metrics(lab.state(), TODAY)
    assert other.read_text() == "mine"
    assert not file.is_symlink()


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond some bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def forbidden() -> Iterator[None]:
    """Refuse each rename."""

    def refuse(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        yield


@pytest.mark.parametrize("fault", [full_disk, forbidden])
def test_the_old_file_stays_if_the_new_cannot_be_written(
    lab: Modelled, fault: Callable[[], AbstractContextManager[None]]
) -> None:
    file = file_of(lab)
    file.parent.mkdir()
    file.write_text("old\n")
    state = lab.state()
    with fault(), pytest.raises(OSError, match=r"too large|denied"):
        write_metrics(state, TODAY)
    assert file.read_text() == "old\n"
    assert [one.name for one in file.parent.glob("*.prom")] == [file.name]
    write_metrics(state, TODAY)
    assert file.read_text() == metrics_text(state, TODAY)
    assert [*file.parent.iterdir()] == [file]


def test_a_missing_folder_is_named(lab: Modelled) -> None:
    with pytest.raises(FileNotFoundError, match="exporter"):
        write_metrics(lab.state(), TODAY)


# Who reads them


def expressions(part: Any) -> Iterator[str]:
    """Yield the queries of a dashboard."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(part, list):
        for value in part:
            yield from expressions(value)


def written(lab: Modelled) -> dict[str, set[str]]:
    """Return the labels of each metric that is written."""
    return {
        name: {key for one in family.samples for key in one.labels}
        for name, family in families(lab).items()
    }


def test_the_dashboard_shows_what_is_written(lab: Modelled) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    texts = [*expressions(dashboard)]
    labels = written(lab)
    assert {name for text in texts for name in NAME.findall(text)} == labels.keys()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (name,) = NAME.findall(target["expr"])
            used = re.findall(r"(\w+)=\"", target["expr"])
            used += re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
            assert {"system", *used} <= labels[name]
            assert "system" in used


def test_the_panels_are_apart() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len({*cells}) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_the_documented_rules_name_what_is_written(lab: Modelled) -> None:
    text = (HOME / "docs" / "nightly.md").read_text()
    labels = written(lab)
    assert {*NAME.findall(text)} <= labels.keys()
    rules = re.findall(r"expr: (.*)", text)
    assert rules
    of_kind = values(lab, "alarms", "standing")
    for rule in rules:
        (name,) = NAME.findall(rule)
        for key, value in re.findall(r'(\w+)="(\w+)"', rule):
            assert key in labels[name]
            assert (value,) in of_kind
