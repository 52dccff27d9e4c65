"""A Kafka broker on this machine, and what Spark needs to write to it. Nothing of it is tidegate's own.

In:  nothing.
Out: `broker()`, its address; SINK, the jars that docs/changelog.md names. Fetched once, as all jars are (local/ivy.py);
     the rest of the broker's class path is what pyspark ships.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from tests.support.servers import ROOT
from tidegate.local import ivy
from tidegate.local.server import free_port

SINK: Final = (
    (
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
    ("org.apache.kafka", "kafka-clients", "3.9.2", "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8"),
    (
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    (
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.2.0",
        "641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
    ),
)
_BROKER: Final = (
    (
        "net.sourceforge.argparse4j",
        "argparse4j",
        "0.7.0",
        "65ceb669d88f63306c680f8088bbf765bbca72d288a61a03703000076c3d3f56",
    ),
    (
        "com.github.ben-manes.caffeine",
        "caffeine",
        "2.9.3",
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b",
    ),
    (
        "commons-validator",
        "commons-validator",
        "1.10.1",
        "ed74711a78d793ca37f6075e4a1e93d107233dfd20d0bb17e32bad88d38e56aa",
    ),
    ("net.sf.jopt-simple", "jopt-simple", "5.0.4", "df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28"),
    (
        "org.apache.kafka",
        "kafka-group-coordinator",
        "3.9.2",
        "d4d57f0955895cc38381f346f5ff7eba487afafa5ba264804af18393305b32fd",
    ),
    (
        "org.apache.kafka",
        "kafka-group-coordinator-api",
        "3.9.2",
        "bd903ba506c8309401a331ef1b826612d1cb95862879551031428da5cf50eab6",
    ),
    ("org.apache.kafka", "kafka-metadata", "3.9.2", "ffe970aee12f00df4b0162f31c719df7c412f9207c166a74cef6611be25a255e"),
    ("org.apache.kafka", "kafka-raft", "3.9.2", "f897533828e55ac466a5b183a25dccbe5a7b97c02162dac38e25338feddfe422"),
    ("org.apache.kafka", "kafka-server", "3.9.2", "4f8667dbd664c4b0906e05499cfdc5f558f14c098b77fa6c09656cceb62a63ef"),
    (
        "org.apache.kafka",
        "kafka-server-common",
        "3.9.2",
        "0374b3f13c3c4b7fd446d35df1ccb0c60931ea27d4972b4de1bb1d548a87f5b2",
    ),
    ("org.apache.kafka", "kafka-storage", "3.9.2", "8a3d7b67dfcd34b1334d4994ed4106ba9c9b37ebcbb177ac47ff44050e8ab84b"),
    (
        "org.apache.kafka",
        "kafka-storage-api",
        "3.9.2",
        "565ab8540b50c7f00ea62c77a6639237ed3a80550245be70dc733f157cd280d6",
    ),
    (
        "org.apache.kafka",
        "kafka-tools-api",
        "3.9.2",
        "501ac034b93853c3dcba4b49e32c7c795de109a96b8ab6d59a9ab19e6ef11491",
    ),
    (
        "org.apache.kafka",
        "kafka-transaction-coordinator",
        "3.9.2",
        "d6ca25648111dfd11f76d3d0f7f51a9458784b645f4e56ce34fbc58d9c9d0296",
    ),
    ("org.apache.kafka", "kafka_2.13", "3.9.2", "dddf49b18c931301fece0048a76d6b0956c36c8b1d1fc721bfed318aa6ee3e4f"),
    ("com.yammer.metrics", "metrics-core", "2.2.0", "6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c"),
    ("org.pcollections", "pcollections", "4.0.1", "1f82766d7c3221930854033bebff5073ea46b43f27326074bbe15d148c18bfb3"),
    (
        "org.scala-lang.modules",
        "scala-java8-compat_2.13",
        "1.0.2",
        "90d5b13656be93fb779b8d7c723efa2498a34af06273bb5204afb65f85a20c1b",
    ),
    (
        "com.typesafe.scala-logging",
        "scala-logging_2.13",
        "3.9.5",
        "87a3017d3f43e6ace7566fe4c3d615134c6914ff871c8d64bb32ca1d996d0545",
    ),
)
_JAVA: Final = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_BEGINS_SECONDS: Final = 180.0
_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}
num.partitions=3
offsets.topic.replication.factor=1
"""


def jars(wanted: tuple[tuple[str, str, str, str], ...] = SINK) -> list[Path]:
    """Their files. Raises DownloadFailed."""
    state = ROOT / ".tidegate"
    return [ivy.fetch(ivy.Artifact(*one), state / "kafka", cache=state / "ivy") for one in wanted]


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The address of a broker of one node, whose topics have three partitions and are made when they are written to."""
    shipped = Path(pyspark.__file__).parent / "jars" / "*"
    path = ":".join(map(str, [*jars(_BROKER), *jars(SINK), shipped]))
    port, file = free_port(), folder / "kafka.properties"
    file.write_text(_PROPERTIES.format(port=port, control=free_port(), folder=folder / "kafka"))
    made = [*_JAVA, "-cp", path, "kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(file)]
    subprocess.run(made, check=True, capture_output=True, timeout=300)
    with (folder / "kafka.log").open("wb") as log:
        process = subprocess.Popen([*_JAVA, "-cp", path, "kafka.Kafka", str(file)], stdout=log, stderr=log)
        try:
            _wait(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    import socket

    until = time.monotonic() + _BEGINS_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"the broker doesn't answer on port {port}; it ended with {process.poll()}")
