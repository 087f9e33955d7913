"""Figures of the server for Prometheus: counts, seconds and sizes, no text of a question or a document.

Keep out: HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from graphrag_pipeline.serve.limits import Admission
from graphrag_pipeline.serve.served_roots import ServedRoots

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counters of one server."""

    def __init__(self, served: ServedRoots) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "graphrag_http_requests", "Requests that were answered.", ["route", "method", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "graphrag_http_request_seconds", "Seconds from the request to the end of its answer.", ["route"],
            buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self._searches = Counter("graphrag_searches", "Searches that ended.", ["method"], registry=self._registry)
        self._tokens = Counter(
            "graphrag_model_tokens", "Tokens that models read and wrote for searches.", ["direction"],
            registry=self._registry,
        )  # fmt: skip
        self.admission: Admission | None = None
        self._registry.register(_State(self, served))
        ProcessCollector(registry=self._registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_search(self, method: str, input_tokens: int, output_tokens: int) -> None:
        """Count a search and the tokens of its models."""
        self._searches.labels(method).inc()
        self._tokens.labels("input").inc(input_tokens)
        self._tokens.labels("output").inc(output_tokens)

    def render(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        rendered: bytes = generate_latest(self._registry)
        return rendered


class _State(Collector):
    """The state of the server at the time of the question."""

    def __init__(self, metrics: Metrics, served: ServedRoots) -> None:
        self._metrics = metrics
        self._served = served

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        admission = self._metrics.admission
        yield _gauge("graphrag_requests_running", "Requests that compute now.", admission.n_running if admission else 0)
        yield _gauge("graphrag_requests_waiting", "Requests in the queue.", admission.n_waiting if admission else 0)
        leases = GaugeMetricFamily("graphrag_leases", "Requests that read a root.", labels=["root"])
        followed = GaugeMetricFamily("graphrag_publications_followed", "Since the start.", labels=["root"])
        snapshots = GaugeMetricFamily("graphrag_snapshot_info", "The open snapshot.", labels=["root", "snapshot"])
        failing = GaugeMetricFamily("graphrag_follow_failing", "1 if the last look failed.", labels=["root"])
        for name in self._served.names:
            root = self._served.root(name)
            leases.add_metric([name], root.n_leases)
            followed.add_metric([name], root.n_followed)
            snapshots.add_metric([name, root.snapshot or ""], 1)
            failing.add_metric([name], int(bool(root.problem)))
        yield from (leases, followed, snapshots, failing)


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, what, value=value)
