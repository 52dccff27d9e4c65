"""TiDB finds a Pump in PD's etcd: its record there says what it is, in each of its states."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.tidb.test_pump import sent
from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Counter, pump_run, running, until
from tests.support.command import tidegate
from tests.support.nursery import Nursery
from tests.support.own_etcd import OwnEtcd, own_etcd_or_skip
from tidegate import tables
from tidegate.commit_ts import physical_ms
from tidegate.config import Pipeline, TidbSource, parse
from tidegate.errors import SourceUnavailable, UsageError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing import followed
from tidegate.lake.standing.followed import Selection
from tidegate.local.certificate import ensure
from tidegate.local.server import free_port
from tidegate.mysql.checking.examination import SourceVerdict
from tidegate.pump.asked import Wish, asked
from tidegate.pump.etcd import Etcd
from tidegate.pump.examination import registered_line
from tidegate.pump.node import Node, NodeState, key_of
from tidegate.pump.opened import may_join
from tidegate.pump.registration import PumpAddress
from tidegate.tidb.records.payload import BinlogType

PREWRITE, COMMIT = BinlogType.PREWRITE, BinlogType.COMMIT
KEY = "/tidb-binlog/v1/pumps/one"
# What TiDB's own Pumps write, in their order, with the JSON types that TiDB's client decodes.
FIELDS: dict[str, type] = {
    "nodeId": str,
    "host": str,
    "state": str,
    "isAlive": bool,
    "score": int,
    "label": type(None),
    "maxCommitTS": int,
    "updateTS": int,
}


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[OwnEtcd]:
    with own_etcd_or_skip(tmp_path / "etcd") as found:
        yield found


def place_in(etcd: OwnEtcd, **settings: Any) -> PumpAddress:
    settings = {"may_join": lambda: True, "heartbeat_seconds": 0.1, "silent_seconds": 3600.0} | settings
    return PumpAddress(etcd.client, "one", f"127.0.0.1:{free_port()}", **settings)


def record(etcd: OwnEtcd) -> dict[str, Any]:
    return json.loads(etcd.client.get(KEY).value or b"{}")


def state(etcd: OwnEtcd) -> str:
    return str(record(etcd).get("state"))


def foreign(etcd: OwnEtcd, state: NodeState, host: str = "elsewhere:8250") -> None:
    """Its pump writes the record each 0.1 s, too."""
    node = Node("one", host, state).text
    until(lambda: etcd.client.swap(KEY, node, etcd.client.get(KEY).revision)[0])


def refused(client: Client) -> bool:
    """Whether a prewrite is refused; one that isn't gets its answer."""
    error = client.write(encode.binlog(PREWRITE, 1500, key=b"k"))
    if not error:
        assert client.write(encode.binlog(COMMIT, 1500, 1501)) == ""
    return error.startswith("this Pump isn't online")


@contextmanager
def client_at(address: str) -> Iterator[Client]:
    client = Client(address)
    try:
        yield client
    finally:
        client.close()


def test_the_record_is_as_tidbs_pump_client_reads_it(tmp_path: Path, etcd: OwnEtcd) -> None:
    place = place_in(etcd)
    now = 1_800_000_000_000 << 18
    with running(pump_run(tmp_path, Counter(now), place=place)):
        until(lambda: record(etcd).get("maxCommitTS", 0) > now)
        found = record(etcd)
        assert {name: type(value) for name, value in found.items()} == FIELDS
        assert list(found) == list(FIELDS)
        assert (found["nodeId"], found["host"], found["state"]) == ("one", place.host, "online")
        assert physical_ms(found["updateTS"]) - physical_ms(now) >= 0
        with client_at(found["host"]) as client:
            assert client.write(encode.binlog(PREWRITE, now + 5, key=b"k")) == ""
        until(lambda: record(etcd)["updateTS"] > found["updateTS"])
    assert len(sent(tmp_path)) == 1


def test_it_is_paused_when_it_ends_and_online_when_it_is_back(tmp_path: Path, etcd: OwnEtcd) -> None:
    place = place_in(etcd)
    for _ in range(2):
        with running(pump_run(tmp_path, Counter(), place=place)):
            until(lambda: state(etcd) == "online")
        assert state(etcd) == "paused"


def test_asked_to_pause_it_ends(tmp_path: Path, etcd: OwnEtcd) -> None:
    stop = threading.Event()
    run = pump_run(tmp_path, Counter(), place=place_in(etcd))
    thread = threading.Thread(target=lambda: run.run(600, stop=stop))
    thread.start()
    until(lambda: state(etcd) == "online")
    said = list(asked(etcd.client, "one", Wish.PAUSE, 0.01))
    thread.join()
    assert stop.is_set()  # so that whoever serves a Pump again after each run doesn't
    assert "no other Pump is online" in said[0]
    assert said[-1].endswith("paused")
    with pytest.raises(UsageError, match="is paused"):
        list(asked(etcd.client, "one", Wish.PAUSE))
    with pytest.raises(UsageError, match="is paused"):
        list(asked(etcd.client, "one", Wish.REOPEN))


def test_asked_to_close_it_waits_for_answers_and_is_offline_until_it_is_let_in_again(
    tmp_path: Path, etcd: OwnEtcd, caplog: pytest.LogCaptureFixture
) -> None:
    place = place_in(etcd)
    payloads = [encode.binlog(PREWRITE, 1000, key=b"k"), encode.binlog(COMMIT, 1000, 1001)]
    with running(pump_run(tmp_path, Counter(2000), place=place)), client_at(f"unix:{tmp_path}/p.sock") as client:
        until(lambda: state(etcd) == "online")
        assert client.write(payloads[0]) == ""
        said = list[str]()
        waits = threading.Thread(target=lambda: said.extend(asked(etcd.client, "one", Wish.CLOSE, 0.01)))
        waits.start()
        until(lambda: refused(client))
        assert state(etcd) == "closing"
        assert waits.is_alive()
        assert client.write(payloads[1]) == ""
        waits.join()
    assert said[-1].endswith("offline")
    found = sent(tmp_path)
    assert [one for one in found if one in payloads] == payloads  # bronze has it by then

    with running(pump_run(tmp_path, Counter(4000), place=place)):
        until(lambda: "was closed and is offline" in caplog.text)
        assert state(etcd) == "offline"
    assert state(etcd) == "offline"
    assert list(asked(etcd.client, "one", Wish.REOPEN))[-1].endswith("paused")
    with running(pump_run(tmp_path, Counter(5000), place=place)):
        until(lambda: state(etcd) == "online")


def test_a_closing_that_is_interrupted_goes_on(tmp_path: Path, etcd: OwnEtcd) -> None:
    place = place_in(etcd)
    with running(pump_run(tmp_path, Counter(2000), place=place)), client_at(f"unix:{tmp_path}/p.sock") as client:
        until(lambda: state(etcd) == "online")
        assert client.write(encode.binlog(PREWRITE, 1000, key=b"k")) == ""
        assert next(asked(etcd.client, "one", Wish.CLOSE))
        until(lambda: refused(client))
    assert state(etcd) == "closing"
    with running(pump_run(tmp_path, Counter(5000), place=place)), client_at(f"unix:{tmp_path}/p.sock") as client:
        assert client.write(encode.binlog(COMMIT, 1000, 1001)) == ""
        until(lambda: state(etcd) == "offline")


@pytest.mark.server
def test_a_pd_that_is_away_stops_no_writes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with own_etcd_or_skip(tmp_path / "etcd", starts=False) as etcd:
        place = place_in(etcd)
        with running(pump_run(tmp_path, Counter(), place=place)), client_at(f"unix:{tmp_path}/p.sock") as client:
            until(lambda: "can't ask PD" in caplog.text)
            assert client.write(encode.binlog(PREWRITE, 1000, key=b"k")) == ""
            etcd.start()
            until(lambda: state(etcd) == "online")
            etcd.stop()
            until(lambda: caplog.text.count("can't ask PD") > 1)  # said when it begins, each time
            assert client.write(encode.binlog(COMMIT, 1000, 1001)) == ""
            etcd.start()
            before = record(etcd)["updateTS"]
            until(lambda: record(etcd)["updateTS"] > before)
            etcd.stop()
        etcd.start()
        assert state(etcd) == "online"  # nobody could be told
    assert len(sent(tmp_path)) == 2


@pytest.mark.server
def test_it_speaks_tls(tmp_path: Path) -> None:
    files = ensure(tmp_path / "tls")
    with own_etcd_or_skip(tmp_path / "etcd", files) as etcd:
        with running(pump_run(tmp_path, Counter(), place=place_in(etcd))):
            until(lambda: state(etcd) == "online")
        with pytest.raises(SourceUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            Etcd([etcd.url]).get(KEY)


def test_one_that_joins_waits_until_apply_knows_it(tmp_path: Path, etcd: OwnEtcd) -> None:
    known = threading.Event()
    looked = threading.Event()

    def may_join() -> bool:
        looked.set()
        return known.is_set()

    with running(pump_run(tmp_path, Counter(), place=place_in(etcd, may_join=may_join))):
        assert looked.wait(120)
        assert record(etcd) == {}
        known.set()
        until(lambda: state(etcd) == "online")


def test_apply_knows_a_pump_that_its_selection_names(tmp_path: Path) -> None:
    def pipeline(*names: str) -> Pipeline:
        pumps = ", ".join(f"{name}: {{conn_id: c, flavour: tidb, listen: ['unix:/p']}}" for name in names)
        lake = f"lake: {{path: {tmp_path}}}\ntables: {{include: ['*.*']}}\n"
        return parse(f"pipeline: test\n{lake}sources: {{{pumps}}}\n", where="test")

    lake = LakeFiles(str(tmp_path))
    assert may_join(pipeline("one"), "one", lake)  # nothing was applied yet
    control.append(lake, tables.FOLLOWED, followed.rows_of(1, "test", [], Selection.of(pipeline("one")), 0))
    assert may_join(pipeline("one"), "one", lake)
    assert not may_join(pipeline("one", "two"), "two", lake)
    assert may_join(pipeline("two"), "two", lake)  # no sibling of it was followed
    both = Selection.of(pipeline("one", "two"))
    control.append(lake, tables.FOLLOWED, followed.rows_of(2, "test", [], both, 0))
    assert may_join(pipeline("one", "two"), "two", lake)


def test_a_name_that_serves_elsewhere_is_left_alone_and_a_silent_one_is_taken(
    tmp_path: Path, etcd: OwnEtcd, caplog: pytest.LogCaptureFixture
) -> None:
    foreign(etcd, NodeState.ONLINE)
    with running(pump_run(tmp_path, Counter(), place=place_in(etcd))):
        until(lambda: "this one waits until that is silent" in caplog.text)
        assert record(etcd)["host"] == "elsewhere:8250"
    assert (record(etcd)["host"], state(etcd)) == ("elsewhere:8250", "online")
    place = place_in(etcd, silent_seconds=0.0)
    with running(pump_run(tmp_path, Counter(), place=place)):
        until(lambda: record(etcd)["host"] == place.host)
        foreign(etcd, NodeState.PAUSING)  # another one's states are no wishes to this one
        until(lambda: record(etcd)["host"] == place.host)
        assert state(etcd) == "online"


def test_check_says_what_pd_has(etcd: OwnEtcd) -> None:
    entry = TidbSource.model_validate(
        {"conn_id": "c", "flavour": "tidb", "listen": ["0.0.0.0:1"], "pd": [etcd.url], "advertise": "here:8250"}
    )

    def line(pause: Any = lambda: None) -> tuple[SourceVerdict, str]:
        found = registered_line("one", entry, pause)
        return found.verdict, found.text

    assert line() == (SourceVerdict.NOTE, "PD answers, and has no Pump one yet")
    foreign(etcd, NodeState.ONLINE)
    assert line(lambda: foreign(etcd, NodeState.ONLINE))[0] is SourceVerdict.REFUSED
    assert line()[0] is SourceVerdict.CAUTION
    foreign(etcd, NodeState.PAUSED, "here:8250")
    assert line() == (SourceVerdict.NOTE, "PD has Pump one as paused at here:8250")
    foreign(etcd, NodeState.OFFLINE, "here:8250")
    assert line()[0] is SourceVerdict.CAUTION
    etcd.stop()
    assert line()[0] is SourceVerdict.UNKNOWN


def test_killed_it_stays_online_with_an_old_heartbeat_until_it_is_back(tmp_path: Path, etcd: OwnEtcd) -> None:
    port = free_port()
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        f"pipeline: test\nlake: {{path: {tmp_path / 'lake'}}}\ntables: {{include: ['*.*']}}\n"
        f"capture: {{land_seconds: 0.1, value_log_reserve_bytes: 0}}\n"
        f"sources: {{one: {{conn_id: one, flavour: tidb, listen: ['127.0.0.1:{port}'], pd: ['{etcd.url}'],"
        f" advertise: '127.0.0.1:{port}'}}}}\n"
    )
    environment = {"AIRFLOW_CONN_ONE": f"mysql://root@127.0.0.1:{free_port()}"}  # no TiDB: it waits for its Pump
    arguments = ["pump", str(file), "--state-dir", str(tmp_path / "state")]
    with Nursery() as nursery:
        killed = nursery.start(arguments, environment, tmp_path / "log")
        until(lambda: state(etcd) == "online")
        killed.send(signal.SIGKILL)
        assert killed.wait(120) is not None
        left = etcd.client.get(KEY)
        assert state(etcd) == "online"
        again = nursery.start(arguments, environment, tmp_path / "log")
        until(lambda: etcd.client.get(KEY).revision > left.revision)
        asked_by_command = tidegate("pump", str(file), "--ask", "pause", **environment)
        assert asked_by_command.returncode == 0, asked_by_command.stderr
        assert asked_by_command.stdout.splitlines()[-1] == f"one at 127.0.0.1:{port}: paused"
        assert again.wait(120) == 0
    assert key_of("one") == KEY


def test_a_pipeline_file_says_what_it_lacks() -> None:
    def why(**keys: str) -> str:
        given = {"listen": "['0.0.0.0:8250']", "pd": "['http://pd:2379']", "advertise": "pump:8250"} | keys
        text = ", ".join(f"{name}: {value}" for name, value in given.items() if value)
        with pytest.raises(Exception, match="sources") as told:
            parse(
                f"pipeline: test\nlake: {{path: /x}}\ntables: {{include: ['*.*']}}\n"
                f"sources: {{one: {{conn_id: one, flavour: tidb, {text}}}}}\n",
                where="test",
            )
        return str(told.value)

    assert "pd and advertise go together" in why(advertise="")
    assert "comes by TCP" in why(listen="['unix:/p.sock']")
    told = why(pd="['http://root:secret@pd:2379']")
    assert "isn't http://host:port" in told
    assert "secret" not in told
    assert "node is made of" in why(node="a/b")
