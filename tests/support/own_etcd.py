"""A real etcd of the tests' own, as PD has one behind its client URLs.

In:  a folder; for TLS a certificate and its key, which is also what clients must show.
Out: OwnEtcd: started, stopped and started again at the same URL; own_etcd_or_skip: skipped by name without the program.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.tidb.pump_world import until
from tidegate.errors import TidegateError
from tidegate.local.server import free_port
from tidegate.pump.etcd import Etcd

PROGRAM = shutil.which("etcd")


class OwnEtcd:
    """A process; stop() kills it, start() goes on with its data."""

    def __init__(self, folder: Path, tls: tuple[Path, Path] | None = None) -> None:
        self._folder, self._tls = folder, tls
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{free_port()}"
        self._peer = f"http://127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None
        self.client = Etcd([self.url], *(tls or (None, None)), tls and tls[0])

    def start(self) -> None:
        urls = {"listen-client-urls": self.url, "advertise-client-urls": self.url, "listen-peer-urls": self._peer}
        urls |= {"initial-advertise-peer-urls": self._peer, "initial-cluster": f"default={self._peer}"}
        files = []
        if self._tls:
            certificate, key = self._tls
            files = ["--cert-file", certificate, "--key-file", key, "--trusted-ca-file", certificate]
            files += ["--client-cert-auth"]
        assert PROGRAM is not None, "it was looked for"
        with (self._folder / "etcd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "--data-dir", self._folder / "data", *[f"--{k}={v}" for k, v in urls.items()], *files],
                stdout=log,
                stderr=log,
            )
        until(self.answers)

    def answers(self) -> bool:
        try:
            self.client.get("a")
        except TidegateError:
            return False
        return True

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def own_etcd_or_skip(folder: Path, tls: tuple[Path, Path] | None = None, *, starts: bool = True) -> Iterator[OwnEtcd]:
    if PROGRAM is None:
        pytest.skip("no etcd here: apt-get install etcd-server")
    folder.mkdir()
    etcd = OwnEtcd(folder, tls)
    try:
        if starts:
            etcd.start()
        yield etcd
    finally:
        etcd.stop()
