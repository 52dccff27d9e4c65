"""MySQL 9 for tests, from the Debian packages of the machine's own mirror, without root rights.

In:  apt-get, dpkg-deb, a Debian archive keyring, and the mirror that the machine's apt already uses.
Out: an unpacked server with its tools (bin/mysqld, mysqlbinlog, mysql, mysqldump) and a Server class.

Neither the host's apt state nor its dpkg database is touched: apt-get runs on a state of its own, with
an empty package status, so that it fetches all libraries, the C library's included.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tidegate.errors import DownloadFailed, HostLacks, ProcessFailed
from tidegate.local.ivy import locked
from tidegate.local.processes import run_whole
from tidegate.local.server import Server

LIBRARIES = "usr/lib/x86_64-linux-gnu"
_TOOLS = ("sbin/mysqld", "bin/mysql", "bin/mysqladmin", "bin/mysqlbinlog", "bin/mysqldump")
_PACKAGES = ("mysql-server-core", "mysql-client-core")
# Only mysqld_safe and its like need Perl.
_NEEDLESS = ("perl", "libperl", "libgdbm", "libdb5")
_SUITE = "sid"


class MySQL9(Server):
    """MySQL 9 from an unpacked folder (see install)."""

    flavour: ClassVar[str] = "mysql"
    grants: ClassVar[tuple[str, ...]] = ("SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.*",)

    def __init__(self, data: Path, base: Path, *, port: int = 0, options: tuple[str, ...] = ()) -> None:
        super().__init__(data, port=port, options=options)
        self.base = base.resolve()

    def initialise(self) -> None:
        done = run_whole(
            [
                *self._program(),
                f"--datadir={self.data / 'data'}",
                f"--secure-file-priv={self.data}",
                "--innodb-redo-log-capacity=8M",  # it grows when it has to
                "--initialize-insecure",
            ]
        )
        if done.returncode != 0:
            self.log.write_text(done.stdout)
            raise ProcessFailed("mysqld --initialize-insecure failed", where=str(self.log), remedy="see its log")

    def command(self) -> list[str]:
        return [
            *self._program(),
            f"--tmpdir={self.socket.parent}",
            "--skip-name-resolve",
            "--server-id=9",
            "--log-bin=binlog",
            "--binlog-row-image=FULL",
            "--binlog-row-metadata=FULL",
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--sync-binlog=1",
            f"--secure-file-priv={self.data}",
            "--mysqlx=OFF",
            "--performance-schema=OFF",
            "--innodb-buffer-pool-size=32M",
        ]

    def _program(self) -> list[str]:
        return [*unpacked(self.base, "mysqld", "mysql"), *(["--user=root"] if os.geteuid() == 0 else [])]


def unpacked(base: Path, program: str, share: str) -> list[str]:
    """A server that unpack() put into base, run with its own libraries. share: its folder of usr/share."""
    root = base / "root"
    texts = root / "usr" / "share" / share
    return [
        str(root / LIBRARIES / "ld-linux-x86-64.so.2"),
        "--library-path",
        str(root / LIBRARIES),
        str(root / "usr" / "sbin" / program),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={texts}",
        f"--character-sets-dir={texts / 'charsets'}",
        f"--plugin-dir={root / 'usr' / 'lib' / 'mysql' / 'plugin'}",
    ]


def install(root: Path) -> Path:
    """Folder of the unpacked server, root/.tidegate/mysql9. Raises HostLacks or DownloadFailed."""
    base = root / ".tidegate" / "mysql9"
    with locked(root / ".tidegate" / ".mysql9.lock"):
        if not (base / "root" / "usr" / "sbin" / "mysqld").exists():
            unpack(download(base, _PACKAGES), base)
        _write_tools(base)
    return base


def download(base: Path, packages: Sequence[str]) -> list[Path]:
    """Debian packages, and all that they need, in base/.apt. Raises HostLacks or DownloadFailed."""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise HostLacks(f"no {program}", remedy=f"{packages[0]} is a Debian package: run on Debian or Ubuntu")
    state, environment = base / ".apt", prepare_apt(base)
    for arguments in (["update"], ["-y", "--download-only", "install", *packages]):
        done = subprocess.run(
            ["apt-get", "-qq", *arguments], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise DownloadFailed(f"apt-get {arguments[0]}: {lines[-1]}", where=packages[0], remedy="check the network")
    return sorted((state / "cache" / "archives").glob("*.deb"))


def prepare_apt(base: Path) -> dict[str, str]:
    """The environment of an apt-get with a state of its own in base/.apt. Raises HostLacks."""
    state = base / ".apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={_keyring()} arch=amd64] {_mirror()} {_SUITE} main\n")
    (state / "apt.conf").write_text(_apt_conf(state))
    return os.environ | {"APT_CONFIG": str(state / "apt.conf"), "LC_ALL": "C"}


def _apt_conf(state: Path) -> str:
    settings = {
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::trustedparts": "/dev/null",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Dir::Cache::archives": state / "cache" / "archives",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Retries": "3",
        "Debug::NoLocking": "true",
    }
    return "".join(f'{name} "{value}";\n' for name, value in settings.items())


def _keyring() -> Path:
    folder = Path("/usr/share/keyrings")
    names = ("debian-archive-trixie-automatic.gpg", "debian-archive-keyring.gpg", "debian-archive-keyring.pgp")
    found = next((folder / name for name in names if (folder / name).exists()), None)
    if found is None:
        raise HostLacks("no Debian archive keyring", remedy="apt-get install debian-archive-keyring")
    return found


def _mirror() -> str:
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False
    )
    found = [line for line in listed.stdout.splitlines() if line and "security" not in line]
    if not found:
        raise HostLacks("apt knows no mirror", remedy="apt-get update")
    return found[0]


def unpack(packages: list[Path], base: Path) -> None:
    """Packages into base/root, which is replaced as a whole."""
    root = base / "root"
    scratch = base / "root.new"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for package in packages:
        if not package.name.startswith(_NEEDLESS):
            subprocess.run(["dpkg-deb", "-x", str(package), str(scratch)], check=True)
    for needless in ("doc", "man", "icu", "locale"):
        shutil.rmtree(scratch / "usr" / "share" / needless, ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)
    scratch.rename(root)


def _write_tools(base: Path) -> None:
    """Wrappers that run each tool with its own C library, whatever the host's is."""
    (base / "bin").mkdir(exist_ok=True)
    for tool in _TOOLS:
        wrapper = base / "bin" / Path(tool).name
        text = (
            '#!/bin/sh\nroot=$(cd "$(dirname "$0")/../root" && pwd)\n'
            f"libraries=$root/{LIBRARIES}\n"
            f'exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$root/usr/{tool}" "$@"\n'
        )
        if not wrapper.exists() or wrapper.read_text() != text:
            fresh = wrapper.with_suffix(".new")
            fresh.write_text(text)
            fresh.chmod(0o755)
            fresh.replace(wrapper)
