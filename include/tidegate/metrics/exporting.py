"""Metrics to Prometheus and to OpenTelemetry.

In:  pipelines by name or file; connections.
Out: Figures: the samples of all of them, looked at when they are asked for. prometheus_text, serve:
     Prometheus' text format, once and over HTTP. push: OTLP, to where the OTEL_* variables say.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tidegate import pipelines
from tidegate.capture import status_file
from tidegate.errors import ConfigError, UsageError
from tidegate.limits import METRICS_PIPELINES_MAX, PAGE_LOOK_SECONDS
from tidegate.metrics.catalogue import METRICS
from tidegate.metrics.disks import disks
from tidegate.metrics.measured import Sample, samples

if TYPE_CHECKING:
    from tidegate.config import Pipeline
    from tidegate.connections import Connections

_OTEL: Final = "opentelemetry-exporter-otlp-proto-http"


class Figures:
    """names: of pipelines, or their files; none: all that TIDEGATE_PIPELINES has. state_dir: of
    value logs here.

    look_seconds: how long to wait for a look; None: until it ends. A longer look goes on, and its
    pipeline's figures stay as they were, tidegate_look_timestamp_seconds too.
    """

    def __init__(
        self,
        names: Sequence[str],
        connections: Connections,
        state_dir: Path,
        *,
        per_table: bool,
        look_seconds: float | None = None,
    ) -> None:
        self._names, self._state_dir, self._per_table = names, state_dir, per_table
        self._look_seconds = look_seconds
        self._readers = pipelines.PipelineReaders(connections, connections)
        self._pool = ThreadPoolExecutor(METRICS_PIPELINES_MAX, "tidegate-metrics")
        self._lock = threading.Lock()
        self._loaded: dict[str, Pipeline] = {}
        self._looks: dict[str, Future[list[Sample]]] = {}
        self._known: dict[str, list[Sample]] = {}
        self._read_at = 0.0
        self._by_metric: Mapping[str, Sequence[Sample]] = {}

    def now(self) -> Mapping[str, Sequence[Sample]]:
        """Samples of all pipelines, by metric; looked at side by side, and again after
        PAGE_LOOK_SECONDS.
        """
        with self._lock:
            if time.monotonic() - self._read_at > PAGE_LOOK_SECONDS:
                by_metric = defaultdict[str, list[Sample]](list)
                for sample in self._samples():
                    by_metric[sample.metric].append(sample)
                self._by_metric, self._read_at = dict(by_metric), time.monotonic()
            return self._by_metric

    def _samples(self) -> Iterator[Sample]:
        pipelines_now = self._pipelines()
        for pipeline in pipelines_now:
            if pipeline.pipeline not in self._looks:
                self._looks[pipeline.pipeline] = self._pool.submit(self._look, pipeline)
        wait(self._looks.values(), self._look_seconds)
        for name, look in list(self._looks.items()):
            if look.done():
                del self._looks[name]
                self._known[name] = look.result()
        for pipeline in pipelines_now:
            yield from self._known.get(pipeline.pipeline, ())

    def _look(self, pipeline: Pipeline) -> list[Sample]:
        captures = status_file.read_all(pipeline, self._state_dir)
        rooms = disks(pipeline, self._state_dir)
        return samples(self._readers.of(pipeline).view(), captures, rooms, per_table=self._per_table)

    def _pipelines(self) -> list[Pipeline]:
        """As their files say now; a file that says nothing valid any more keeps what it said before."""
        if not self._names:
            good = {str(file.path): file.pipeline for file in pipelines.good_files()}
            broken = {path: known for path, known in self._loaded.items() if path not in good and Path(path).exists()}
            self._loaded = broken | good
        for name in self._names:
            try:
                self._loaded[name] = pipelines.load(pipelines.find(name))
            except (ConfigError, UsageError, OSError):
                if name not in self._loaded:
                    raise
        # Prometheus refuses two series with the same labels, and all others with them.
        return list({pipeline.pipeline: pipeline for pipeline in self._loaded.values()}.values())


class _PrometheusCollector(Collector):
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[GaugeMetricFamily]:
        by_metric = self._figures.now()
        for name, metric in METRICS.items():
            family = GaugeMetricFamily(name, metric.meaning, labels=metric.labels)
            for sample in by_metric.get(name, ()):
                family.add_metric(sample.labels, sample.value)
            if family.samples:
                yield family


def prometheus_text(figures: Figures) -> str:
    """In the text format 0.0.4. Raises ConfigError, UsageError."""
    return generate_latest(_registry(figures)).decode()


def serve(figures: Figures, host: str, port: int) -> Callable[[], None]:
    """Answers GET /metrics from now on, in threads of its own; gives what ends it. Raises UsageError."""
    figures.now()  # so that a file that can't be loaded fails here, not at the first scrape
    try:
        server, thread = start_http_server(port, host, _registry(figures))
    except OSError as error:
        raise UsageError(
            f"can't listen: {error.strerror or error}", where=f"{host}:{port}", remedy="give another --port or --host"
        ) from error

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end


def push(figures: Figures) -> Callable[[], None]:
    """Sends to OTLP (HTTP) from now on, as OTEL_EXPORTER_OTLP_ENDPOINT and the other OTEL_*
    variables say; gives what ends it. Raises UsageError without OpenTelemetry's exporter.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.metrics import CallbackOptions, Observation
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    except ImportError as error:
        raise UsageError(f"{_OTEL} isn't installed", where="--otlp", remedy=f"pip install {_OTEL}") from error

    def observed(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        labels = METRICS[name].labels
        return lambda _options: [
            Observation(sample.value, dict(zip(labels, sample.labels, strict=True)))
            for sample in figures.now().get(name, ())
        ]

    figures.now()
    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
    meter: Any = provider.get_meter("tidegate")
    for name, metric in METRICS.items():
        meter.create_observable_gauge(name, [observed(name)], description=metric.meaning)
    return provider.shutdown


def _registry(figures: Figures) -> CollectorRegistry:
    # auto_describe would collect at once, to learn the names.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_PrometheusCollector(figures))
    return registry
