"""Metrics for Prometheus: names, types and units as its checker wants them; a dashboard that fits them."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.browser.stage import LargeRun

from anabranch import Session, col, count
from anabranch.errors import SettingsError
from anabranch.observe.metrics import MOST_LABELS, Metrics, named, serve_metrics, write_metrics

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "docs" / "grafana.json"
SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"')
UNITS = (
    "seconds",
    "bytes",
    "rows",
    "ratio",
    "ticks",
    "sites",
    "partitions",
    "state",
    "info",
    "gone",
)


def counted() -> Metrics:
    session = Session.in_process(sites=2, settings={"max_rows_per_epoch": 1_000})
    session.stream("tcp", generator="packets", rows=6_000, ordered="time", lateness=3)
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    metrics = Metrics()
    session.listen(metrics.add)
    session.start(sinks={"flows": "memory"}, at_end="close").await_termination()
    return metrics


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    return counted()


def parsed(text: str) -> tuple[dict[str, str], dict[str, list[tuple[dict[str, str], float]]]]:
    """Types by name and samples by name, read as strictly as Prometheus does."""
    types: dict[str, str] = {}
    samples: dict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    assert text.endswith("\n")
    helped = None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped = line.split()[2]
            assert len(line.split()) > 3
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == helped
            assert name not in types, "a metric is told in one piece"
            types[name] = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            name, labels, value = found.groups()
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert (family if family in types else name) == helped
            pairs = LABEL.findall((labels or "").replace("+Inf", "Inf").replace("le=", "le="))
            samples[name].append((dict(pairs), float(value)))
    return types, samples


def test_names_types_and_units_follow_the_conventions(metrics: Metrics) -> None:
    types, samples = parsed(metrics.text())
    assert len(types) > 20
    for name, kind in types.items():
        assert re.fullmatch(r"anabranch_[a-z][a-z_]*", name)
        assert kind in ("counter", "gauge", "histogram")
        assert name.endswith("_total") == (kind == "counter"), name
        assert name.removesuffix("_total").endswith(UNITS) or kind == "counter", name
        assert not re.search(r"_(ms|millis|kb|mb|percent)\b", name), "base units only"
    for name, found in samples.items():
        keys = [tuple(sorted(labels.items())) for labels, _ in found]
        assert len(set(keys)) == len(keys), f"{name} is told twice"


def test_figures_are_those_of_the_run(metrics: Metrics) -> None:
    _, samples = parsed(metrics.text())
    assert samples["anabranch_epochs_total"] == [({}, 7.0)]
    assert samples["anabranch_input_rows_total"] == [({"stream": "tcp"}, 6_000.0)]
    assert sum(value for _, value in samples["anabranch_site_input_rows_total"]) == 6_000
    assert samples["anabranch_result_rows_total"][0][1] > 0
    states = {labels["state"]: value for labels, value in samples["anabranch_run_state"]}
    assert states == {"running": 0.0, "ended": 1.0, "failed": 0.0}


def test_the_histogram_adds_up(metrics: Metrics) -> None:
    _, samples = parsed(metrics.text())
    name = "anabranch_epoch_duration_seconds"
    counts = [value for _, value in samples[f"{name}_bucket"]]
    assert counts == sorted(counts)
    assert samples[f"{name}_bucket"][-1] == ({"le": "Inf"}, samples[f"{name}_count"][0][1])
    assert counts[-1] == 7
    assert samples[f"{name}_sum"][0][1] > 0


def test_labels_are_bounded() -> None:
    many = {f"query-{number}": 1.0 for number in range(MOST_LABELS + 100)}
    found = named("query", many)
    assert len(found) == MOST_LABELS + 1
    assert found[-1] == ({"query": "other"}, 100.0)
    large, metrics = LargeRun(), Metrics()
    metrics.add(large.started)
    metrics.add(large.epoch(0))
    _, samples = parsed(metrics.text())
    assert len(samples["anabranch_site_busy_seconds_total"]) == 256
    assert sum(map(len, samples.values())) < 2_000, "never one for each partition"


def test_odd_names_are_escaped() -> None:
    from anabranch.observe.metrics import gauge

    line = list(gauge("x", "About.", [({"query": 'a"b\\c\nd'}, 1)]))[-1]
    assert line == 'anabranch_x{query="a\\"b\\\\c\\nd"} 1'


def test_they_are_served_on_loopback_and_only_they(metrics: Metrics) -> None:
    port, close = serve_metrics(metrics, 0)
    try:
        for path, status in (("/metrics", 200), ("/", 404), ("/../etc/passwd", 404)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == status
            text = answer.read().decode()
            assert (text == metrics.text()) == (status == 200)
            connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/metrics", b"x")
        assert connection.getresponse().status == 501
        with pytest.raises(SettingsError, match="another port"):
            serve_metrics(metrics, port)
    finally:
        close()


def test_a_page_whose_name_was_rebound_to_this_machine_reads_no_metrics(metrics: Metrics) -> None:
    port, close = serve_metrics(metrics, 0, names=["Here.example", "proxy.example:9000"])

    def status(*hosts: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.putrequest("GET", "/metrics", skip_host=True)
        for host in hosts:
            connection.putheader("Host", host.format(port=port))
        connection.endheaders()
        answer = connection.getresponse()
        told = answer.read().decode()
        connection.close()
        assert (told == metrics.text()) == (answer.status == 200)
        return answer.status

    try:
        for ours in ("127.0.0.1:{port}", "LOCALHOST:{port}", "[::1]:{port}"):
            assert status(ours) == 200, ours
        for given in ("here.example:{port}", "here.example", "proxy.example:9000"):
            assert status(given) == 200, given
        for foreign in ("evil.example:{port}", "evil.example", "127.0.0.1", "127.0.0.1:1", ""):
            assert status(foreign) == 421, foreign
        assert status("proxy.example:{port}") == 421, "only with the port that was given"
        assert status() == 421
        assert status("127.0.0.1:{port}", "evil.example") == 421
    finally:
        close()


def test_a_file_has_the_last_figures(tmp_path: Path, metrics: Metrics) -> None:
    close = write_metrics(metrics, tmp_path / "run.prom")
    close()
    assert (tmp_path / "run.prom").read_text() == metrics.text()
    assert [path.name for path in tmp_path.iterdir()] == ["run.prom"]
    with pytest.raises(SettingsError, match="metrics"):
        write_metrics(metrics, tmp_path / "no" / "run.prom")


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    session_metrics, large = Metrics(), LargeRun()
    session_metrics.add(large.started)
    session_metrics.add(large.epoch(0))
    types, _ = parsed(session_metrics.text())
    known = set(types) | {
        f"{n}_{part}"
        for n, k in types.items()
        if k == "histogram"
        for part in ("bucket", "sum", "count")
    }
    board = json.loads(DASHBOARD.read_text())
    assert isinstance(board["schemaVersion"], int)
    assert board["uid"]
    assert {"templating", "time", "panels", "title"} <= set(board)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    asked: set[str] = set()
    for panel in board["panels"]:
        assert panel["type"] in ("timeseries", "stat", "bargauge", "table", "heatmap")
        assert panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies on another"
        taken |= cells
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            asked |= set(re.findall(r"anabranch_[a-z_]+", target["expr"]))
    assert asked <= known, asked - known
    assert len(asked) > 12


def test_the_command_serves_logs_and_writes(tmp_path: Path) -> None:
    spec = tmp_path / "run.sql"
    example = (ROOT / "examples" / "auctions.sql").read_text()
    spec.write_text(example.replace("out/auctions", str(tmp_path / "out")))
    done = subprocess.run(
        [
            sys.executable, "-m", "anabranch", "run", str(spec), "--in-process", "--json",
            "--checkpoint", str(tmp_path / "ck"), "--metrics", "0",
            "--metrics-file", str(tmp_path / "run.prom"), "--log", "json",
        ],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    lines = [json.loads(one) for one in done.stderr.splitlines() if one.startswith("{")]
    kinds = [one["event"] for one in lines]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "RunEnded"
    assert "EpochHappened" in kinds
    assert all({"time", "level", "event", "epoch"} <= set(one) for one in lines)
    _, samples = parsed((tmp_path / "run.prom").read_text())
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert samples["anabranch_epochs_total"][0][1] == summary["epochs"]


def test_a_log_of_another_kind_is_refused(tmp_path: Path) -> None:
    from anabranch.observe.seeing import Shown

    with pytest.raises(SettingsError, match="json"):
        Shown(log="xml")
