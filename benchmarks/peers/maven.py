"""Java peers: their jars by Ivy, their programs by `java FILE.java`.

In:  Maven coordinates.
Out: a folder of jars with everything they depend on, under .tidegate/bench/jars; Missing when it can't be had.

pyspark ships Ivy (tidegate.local.ivy says more); it checks each file against the repository's own checksum.
Fetched once, then offline.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from benchmarks.figures import Missing
from tidegate.local import ivy

CONNECTOR = ("mysql-binlog-connector-java 0.30.1", ("com.zendesk:mysql-binlog-connector-java:0.30.1",))
DEBEZIUM = (
    "Debezium 3.4.0 embedded",
    (
        "io.debezium:debezium-embedded:3.4.0.Final",
        "io.debezium:debezium-connector-mariadb:3.4.0.Final",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
)
FLINK_VERSION = "1.20.3"
FLINK = (
    f"Flink CDC 3.5.0 into Paimon 1.3.1, Flink {FLINK_VERSION}",
    (
        *(f"org.apache.flink:{name}:{FLINK_VERSION}" for name in ("flink-clients", "flink-table-api-java-bridge")),
        *(f"org.apache.flink:{name}:{FLINK_VERSION}" for name in ("flink-table-planner-loader", "flink-table-runtime")),
        *(f"org.apache.flink:{name}:{FLINK_VERSION}" for name in ("flink-connector-base", "flink-connector-files")),
        "org.apache.flink:flink-sql-connector-mysql-cdc:3.5.0",
        "org.apache.paimon:paimon-flink-1.20:1.3.1",
        *(f"org.apache.hadoop:{name}:3.4.1" for name in ("hadoop-client-api", "hadoop-client-runtime")),
        "com.mysql:mysql-connector-j:8.4.0",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
)
COLLECTORS = ("-XX:+UseG1GC", "-XX:+UseParallelGC")  # of these two the better one is measured
_SECONDS = 300
_FETCHED = ".complete"


def jars(peer: tuple[str, tuple[str, ...]], cache: Path) -> Path:
    """The folder with a peer's jars. Raises Missing."""
    name, coordinates = peer
    folder = cache / "jars" / name.split()[0].lower()
    if (folder / _FETCHED).exists():
        return folder
    if not _compiles():
        raise Missing(f"{name}: needs a JDK, to compile our few lines that call it (apt-get install openjdk-17-jdk)")
    with ivy.locked(cache / ".lock"), tempfile.TemporaryDirectory(dir=cache) as scratch:
        module = Path(scratch) / "ivy.xml"
        module.write_text(_module(coordinates))
        command = [
            *("java", "-jar", str(ivy._ivy_jar()), "-cache", str(cache / "ivy"), "-ivy", str(module)),
            *("-confs", "default", "-types", "jar", "bundle"),
            *("-retrieve", f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise Missing(f"{name}: not fetched within {_SECONDS} s") from None
        found = Path(scratch) / "jars"
        if done.returncode != 0 or not any(found.glob("*.jar")):
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if "UNRESOLVED" in line.upper()]
            raise Missing(f"{name}: Ivy could not fetch it ({lines[0] if lines else f'exit code {done.returncode}'})")
        (found / _FETCHED).touch()
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(found, folder)
    return folder


def program(source: str, folder: Path, *jvm: str) -> list[str]:
    """The command that compiles and runs peers/SOURCE with a folder of jars, under further options of the JVM."""
    path = Path(__file__).parent / source
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", "-Xmx2g", *jvm, quiet, "-cp", f"{folder}/*", str(path)]


def _compiles() -> bool:
    if shutil.which("java") is None:
        return False
    listed = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=False)
    return "jdk.compiler" in listed.stdout


def _module(coordinates: tuple[str, ...]) -> str:
    lines = []
    for coordinate in coordinates:
        group, name, version = (quoteattr(part) for part in coordinate.split(":"))
        lines.append(f'<dependency org={group} name={name} rev={version} conf="default->master,runtime"/>')
    return (
        '<ivy-module version="2.0"><info organisation="tidegate" module="bench"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{"".join(lines)}</dependencies>'
        "</ivy-module>"
    )
