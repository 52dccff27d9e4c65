"""Prometheus and OpenTelemetry get the figures of real lakes, by the servers and clients that users have."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tidegate.capture.value_log.folder import value_log_folder
from tidegate.config import Pipeline
from tidegate.connections import from_environment
from tidegate.errors import ConfigError, UsageError
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.exporting import Figures, prometheus_text, push, serve
from tidegate.metrics.measured import Sample
from tidegate.pipelines import load


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of pipeline files: one whose lake is new, one whose lake is a file."""
    (tmp_path / "wrong").write_text("no lake")
    for name, lake in (("new", tmp_path / "lake"), ("wrong", tmp_path / "wrong")):
        text = f"pipeline: {name}\nlake: {{path: {lake}}}\ntables: {{include: ['shop.*']}}\n"
        text += "sources: {db: {conn_id: nowhere, flavour: mysql}}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_NOWHERE", "mysql://u:hidden@127.0.0.1:1")
    return tmp_path


def figures(folder: Path, *names: str) -> Figures:
    return Figures(names, from_environment, folder / "state", per_table=False)


def series(name: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    """The metric, the pipeline, and the other labels."""
    return (name, labels["pipeline"], *(labels[label] for label in METRICS[name].labels[1:]))


def values(text: str) -> dict[tuple[str, ...], float]:
    return {
        series(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_reads_every_pipeline_of_the_folder(folder: Path) -> None:
    text = prometheus_text(figures(folder))
    known = values(text)
    assert (known["tidegate_up", "new"], known["tidegate_up", "wrong"]) == (1, 0)
    assert known["tidegate_state", "new", "not started"] == 1
    assert known["tidegate_source_up", "new", "db"] == 0
    assert {name for name, *_ in known} <= set(METRICS)
    assert "hidden" not in text


def test_it_is_served_and_follows_the_pipeline_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.metrics.exporting.PAGE_LOOK_SECONDS", 0)
    port = free_port()
    end = serve(figures(folder), "127.0.0.1", port)
    try:
        assert ("tidegate_up", "new") in values(scraped(port))
        (folder / "new.yaml").unlink()
        assert ("tidegate_up", "new") not in values(scraped(port))
        with pytest.raises(UsageError, match="can't listen"):
            serve(figures(folder), "127.0.0.1", port)
    finally:
        end()


def test_a_file_that_becomes_invalid_keeps_what_it_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.metrics.exporting.PAGE_LOOK_SECONDS", 0)
    by_name = figures(folder, "new")
    assert values(prometheus_text(by_name))["tidegate_up", "new"] == 1
    (folder / "new.yaml").write_text("pipeline: new\nlake: [")
    assert values(prometheus_text(by_name))["tidegate_up", "new"] == 1
    with pytest.raises(ConfigError):
        prometheus_text(figures(folder, "new"))


def test_a_file_of_the_folder_that_becomes_invalid_keeps_what_it_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.metrics.exporting.PAGE_LOOK_SECONDS", 0)
    every = figures(folder)
    assert values(prometheus_text(every))["tidegate_up", "new"] == 1
    (folder / "new.yaml").write_text("pipeline: new\nlake: [")
    assert values(prometheus_text(every))["tidegate_up", "new"] == 1


def test_a_pipeline_by_its_name_and_by_its_file_has_each_series_once(folder: Path) -> None:
    text = prometheus_text(figures(folder, "new", str(folder / "new.yaml")))
    assert text.count('tidegate_up{pipeline="new"}') == 1


@pytest.mark.parametrize("status", ["[]", "null", "{", '{"state": "direct"}'])
def test_one_pipelines_trouble_leaves_the_figures_of_the_others(folder: Path, status: str) -> None:
    """The ledger of its lake can't be read; nor can its capture's status."""
    (folder / "bad.yaml").write_text((folder / "new.yaml").read_text().replace("new", "bad").replace("/lake", "/bad"))
    log = folder / "bad/control/ledger/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("no JSON")
    status_file = value_log_folder(load(folder / "bad.yaml"), "db", folder / "state") / "status.json"
    status_file.parent.mkdir(parents=True)
    status_file.write_text(status)
    known = values(prometheus_text(figures(folder)))
    assert (known["tidegate_up", "new"], known["tidegate_up", "bad"]) == (1, 0)


def test_nobody_waits_for_the_lake_of_another(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is silent: what was known before stays, and is told anew once it answers."""
    monkeypatch.setattr("tidegate.metrics.exporting.PAGE_LOOK_SECONDS", 0)
    every = Figures((), from_environment, folder / "state", per_table=False, look_seconds=0.3)
    answers, look = threading.Event(), Figures._look
    answers.set()

    def slow(of: Figures, pipeline: Pipeline) -> list[Sample]:
        if pipeline.pipeline == "wrong":
            assert answers.wait(30)
        return look(of, pipeline)

    monkeypatch.setattr(Figures, "_look", slow)
    looked = "tidegate_look_timestamp_seconds"
    while (looked, "wrong") not in (before := values(prometheus_text(every))):
        pass  # the first look imports much
    answers.clear()
    while (now := values(prometheus_text(every)))[looked, "new"] == before[looked, "new"]:
        pass
    assert now[looked, "wrong"] == before[looked, "wrong"]
    answers.set()
    while values(prometheus_text(every))[looked, "wrong"] == before[looked, "wrong"]:
        pass


def test_opentelemetry_gets_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch, collector: Collected) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
    end = push(figures(folder, "new"))
    end()  # sends what there is
    points = {
        series(metric.name, {each.key: each.value.string_value for each in point.attributes}): point.as_double
        for request in collector.requests
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.gauge.data_points
    }
    assert points["tidegate_up", "new"] == 1
    expected = values(prometheus_text(figures(folder, "new")))
    assert points.keys() == expected.keys()


class Collected:
    """An OTLP collector on loopback. requests: what it was sent."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]


@pytest.fixture
def collector() -> Iterator[Collected]:
    collected = Collected()
    thread = threading.Thread(target=collected.server.serve_forever)
    thread.start()
    yield collected
    collected.server.shutdown()
    collected.server.server_close()
    thread.join()


def scraped(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def free_port() -> int:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as taken:
        return int(taken.server_address[1])
