"""A Pump acknowledges what is durable and nothing else, and its bronze is what TiDB sent."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import NODE, Client, Counter, Fates, pump_run, running, until
from tests.kit.tidb.replay.recording import Recording
from tests.support.captures import landed_segments, wait_for_bronze
from tidegate.capture.value_log.folder import value_log_folder
from tidegate.capture.value_log.log import ValueLog
from tidegate.config import parse
from tidegate.errors import HostRefused, PositionLost, SourceRefused, ValueLogFull
from tidegate.lake.figures.status import captured_server
from tidegate.lake.files import LakeFiles
from tidegate.local.certificate import ensure
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.pump import server as server_module
from tidegate.pump.opened import pump_run as opened_run
from tidegate.pump.server import PumpServer, PumpServerSettings, Write
from tidegate.segments.segment import NO_SERVER, Segment
from tidegate.tables import SegmentKind
from tidegate.tidb.records.enclosed import payloads_of
from tidegate.tidb.records.pairing import ROLLED_BACK
from tidegate.tidb.records.payload import Binlog, BinlogType, binlog_of, fake_payload

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "tidb"
PREWRITE, COMMIT = BinlogType.PREWRITE, BinlogType.COMMIT
SECOND = 1000 << 18


def stored(folder: Path) -> list[Segment]:
    """Bronze, whose segments follow each other and never take resolved_ts back."""
    segments = landed_segments(folder / "lake")
    resolved, offset = 0, 0
    for seq, segment in enumerate(segments, 1):
        segment.verify()
        assert (segment.seq, segment.kind, segment.file) == (seq, SegmentKind.TIDB, NODE)
        assert (segment.start_pos, segment.prev_commit_ts) == (offset, resolved)
        assert segment.resolved_ts >= resolved
        resolved, offset = segment.resolved_ts, segment.end_pos
    return segments


def sent(folder: Path) -> list[bytes]:
    """What bronze has, without the Pump's own timestamps."""
    return [one for segment in stored(folder) for one in payloads_of(segment) if not binlog_of(one).is_fake]


def test_a_recorded_stream_is_in_bronze_as_it_was_sent(tmp_path: Path) -> None:
    payloads = [payload for _, payload in Recording(GOLDEN / "p04_bank").payloads()]
    with running(pump_run(tmp_path, Counter())):
        client = Client(f"unix:{tmp_path}/p.sock")
        assert [client.write(payload) for payload in payloads] == [""] * len(payloads)
        assert client.write(b"") == ""  # TiDB's probe
        client.close()
    assert sent(tmp_path) == payloads


def test_many_writers_share_a_sync_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, taken = PumpServer.take, list[Write]()
    payloads = [encode.binlog(PREWRITE, 1000 + n, key=b"k%d" % n) for n in range(600)]

    def later(server: PumpServer, *given: Any) -> list[Write]:
        """As on a slow disk: on a fast one each writer is answered before the next one asks."""
        until(lambda: len(server._waiting) >= min(8, len(payloads) - len(taken)))
        found = take(server, *given)
        taken.extend(found)
        return found

    monkeypatch.setattr(PumpServer, "take", later)
    with running(pump_run(tmp_path, Counter())):
        client = Client(f"unix:{tmp_path}/p.sock")
        with ThreadPoolExecutor(32) as pool:
            assert set(pool.map(client.write, payloads)) == {""}
        client.close()
    assert sorted(sent(tmp_path)) == sorted(payloads)
    assert len(stored(tmp_path)) < len(payloads) / 2
    assert stored(tmp_path)[-1].resolved_ts < 1600  # none of them has an answer


def test_what_is_acknowledged_is_in_the_value_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pump_run(tmp_path, Counter())
    synced = list[int]()
    sync = ValueLog.sync

    def watched(log: ValueLog) -> None:
        time.sleep(0.2)
        sync(log)
        synced.append(log.last_seq)

    monkeypatch.setattr(ValueLog, "sync", watched)
    with running(run):
        client = Client(f"unix:{tmp_path}/p.sock")
        for n in range(3):
            before = len(synced)
            assert client.write(encode.binlog(PREWRITE, 1000 + n, key=b"k")) == ""
            assert len(synced) > before
        client.close()


def test_a_full_disk_is_an_error_to_tidb_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    run = pump_run(tmp_path, Counter(), value_log_bytes_max=1 << 20)
    client = Client(f"unix:{tmp_path}/p.sock")
    answers = list[str]()
    with pytest.raises(ValueLogFull), running(run):
        answers.append(client.write(encode.binlog(PREWRITE, 1000, value=bytes(2 << 20), key=b"k")))
    client.close()
    assert answers == ["this Pump stops"]
    assert sent(tmp_path) == []


def test_broken_and_foreign_payloads_are_refused(tmp_path: Path) -> None:
    with running(pump_run(tmp_path, Counter())):
        client = Client(f"unix:{tmp_path}/p.sock")
        assert "broken" in client.write(b"\x0f")
        assert client.write(encode.binlog(PREWRITE, 5), cluster=8) == "this Pump is of cluster 7, not of 8"
        with pytest.raises(grpc.RpcError):
            client.write(bytes(1 << 25))
        client.close()
    assert sent(tmp_path) == []


def test_an_unanswered_prewrite_is_known_again_after_a_restart(tmp_path: Path) -> None:
    start = 1000 * SECOND
    for later in (0, 100):
        with running(pump_run(tmp_path, Counter())):
            client = Client(f"unix:{tmp_path}/p.sock")
            client.write(encode.binlog(PREWRITE, start + later * SECOND, key=b"k"))
            client.close()
    assert stored(tmp_path)[-1].resolved_ts == start
    with running(pump_run(tmp_path, Counter(start + 200 * SECOND))):
        client = Client(f"unix:{tmp_path}/p.sock")
        client.write(encode.binlog(COMMIT, start, start + 5))
        client.write(encode.binlog(COMMIT, start + 100 * SECOND, start + 101 * SECOND))
        until(lambda: stored(tmp_path)[-1].resolved_ts > start + 101 * SECOND)
        client.close()


def test_tidbs_answer_for_an_orphan_becomes_part_of_the_stream(tmp_path: Path) -> None:
    one, two, three = (n * SECOND for n in (1000, 1010, 1020))
    fates = Fates({one: one + 7, two: ROLLED_BACK})
    with running(pump_run(tmp_path, Counter(), fates)):
        client = Client(f"unix:{tmp_path}/p.sock")
        for start in (one, two, three):
            client.write(encode.binlog(PREWRITE, start, key=b"k"))
        until(lambda: len(sent(tmp_path)) > 3 and stored(tmp_path)[-1].resolved_ts == three)
        client.close()
    answers = [binlog_of(payload) for payload in sent(tmp_path)[3:]]
    assert answers == [
        Binlog(COMMIT, one, one + 7, b"k"),
        Binlog(BinlogType.ROLLBACK, two, 0, b"k"),
    ]
    assert stored(tmp_path)[-1].resolved_ts == three  # nobody answers for it: it waits, and holds all after it


def test_a_pump_serves_while_nobody_gives_it_timestamps(tmp_path: Path) -> None:
    with running(pump_run(tmp_path, Counter(None))):
        client = Client(f"unix:{tmp_path}/p.sock")
        assert client.write(encode.binlog(PREWRITE, 5, key=b"k")) == ""
        client.close()
    assert len(sent(tmp_path)) == 1


def test_a_pump_serves_while_tidb_leaves_it_without_an_answer(tmp_path: Path) -> None:
    """A dead network refuses nothing: TiDB's commits don't wait for what a Pump asks."""
    answers = threading.Event()

    class Silent(Counter):
        def tso(self) -> int:
            answers.wait(300)
            return super().tso()

    with running(pump_run(tmp_path, Silent())):
        client = Client(f"unix:{tmp_path}/p.sock")
        payloads = [encode.binlog(PREWRITE, 1000 + n, key=b"k%d" % n) for n in range(3)]
        assert [client.write(payload, seconds=120) for payload in payloads] == [""] * 3
        answers.set()
        client.close()
    assert sent(tmp_path) == payloads


@pytest.mark.parametrize("error", [SourceRefused("access denied for user 'pump' (1045)"), KeyError("binlog")])
def test_a_pump_serves_while_tidb_refuses_it_or_answers_what_is_not_understood(
    error: Exception, tmp_path: Path
) -> None:
    """A password that was changed, a right that was taken: TiDB's commits don't wait for who mends it."""

    class Refused(Counter):
        refuses, asked = True, 0

        def tso(self) -> int:
            self.asked += 1
            if self.refuses:
                raise error
            return super().tso()

    counter = Refused(100)
    with running(pump_run(tmp_path, counter)):
        client = Client(f"unix:{tmp_path}/p.sock")
        for start_ts in (5, 6):
            assert client.write(encode.binlog(PREWRITE, start_ts, key=b"k")) == ""
            asked = counter.asked
            until(lambda so_far=asked: counter.asked > so_far + 1)  # type: ignore[misc]
        until(lambda: len(sent(tmp_path)) == 2)
        counter.refuses = False
        until(lambda: len(stored(tmp_path)) > 2)
        client.close()


def test_another_pump_under_the_same_name_is_refused(tmp_path: Path) -> None:
    run = pump_run(tmp_path, Counter())
    with running(run):
        wait_for_bronze(tmp_path / "lake", bool)
    source = run.source()
    source.settings = replace(source.settings, node="two")
    run.source = lambda: source
    with pytest.raises(PositionLost, match="are of Pump one, and this one is two"):  # by the run, which nobody stops
        run.run(600)
    assert value_log_folder(run.pipeline, "one", run.state_dir).is_dir()


def test_a_taken_address_is_said(tmp_path: Path) -> None:
    server = PumpServer(PumpServerSettings(["127.0.0.1:0"], 1 << 20))
    server.start()
    with pytest.raises(HostRefused, match="can't listen"):
        PumpServer(PumpServerSettings([server.addresses[0]], 1 << 20))
    server.close("done")


def test_tls_refuses_who_does_not_speak_it(tmp_path: Path) -> None:
    certificate, key = ensure(tmp_path)
    server = PumpServer(PumpServerSettings(["127.0.0.1:0"], 1 << 20, certificate, key))
    server.start()
    taker = threading.Thread(target=lambda: [write.answer() for write in server.take(20, 1 << 20)])
    taker.start()
    client = Client(server.addresses[0], grpc.ssl_channel_credentials(certificate.read_bytes()))
    assert client.write(encode.binlog(PREWRITE, 5, key=b"k")) == ""
    plain = Client(server.addresses[0])
    with pytest.raises(grpc.RpcError):
        plain.write(encode.binlog(PREWRITE, 6, key=b"k"), seconds=1)
    taker.join()
    for one in (client, plain):
        one.close()
    server.close("done")


def test_a_second_pump_at_a_unix_path_takes_it_from_nobody(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/p.sock"
    server = PumpServer(PumpServerSettings([address], 1 << 20))
    server.start()
    with pytest.raises(HostRefused, match="another Pump does"):
        PumpServer(PumpServerSettings(["127.0.0.1:0", address], 1 << 20))
    client = Client(address)
    assert client.write(b"") == "", "the first one is reached"
    client.close()
    server.close("it ends")
    PumpServer(PumpServerSettings([address], 1 << 20)).close("it ends")


def test_a_lock_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.sock.lock").mkdir()
    with pytest.raises(HostRefused, match=rf"its lock, {tmp_path}/p\.sock\.lock, can't be written: Is a directory"):
        PumpServer(PumpServerSettings([f"unix:{tmp_path}/p.sock"], 1 << 20))


def test_requests_hold_so_much_together_and_what_comes_then_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes them: each holds its bytes until it is answered."""
    monkeypatch.setattr(server_module, "PUMP_HELD_BYTES_MAX", 2500)
    server = PumpServer(PumpServerSettings([f"unix:{tmp_path}/p.sock"], 1 << 20))
    server.start()
    client = Client(f"unix:{tmp_path}/p.sock")
    payloads = [encode.binlog(PREWRITE, 5 + number, key=b"k" * 1000) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        waiting = []
        for number, payload in enumerate(payloads[:3], 1):
            waiting.append(pool.submit(client.write, payload))
            until(lambda count=number: len(server._waiting) == count)
        assert client.write(payloads[3]) == "too much waits to be stored"
        assert client.write(b"") == "", "it serves"
        for write in server.take(5, 1 << 20):
            write.answer()
        assert [one.result() for one in waiting] == ["", "", ""]
        assert server._held_bytes == 0
        again = pool.submit(client.write, payloads[3])
        for write in server.take(5, 1 << 20):
            write.answer()
        assert again.result() == ""
    client.close()
    server.close("done")


def test_another_cluster_is_refused_before_anything_of_it_is_acknowledged(tmp_path: Path) -> None:
    """The pipeline file names none: the first one that wrote is the Pump's, in its next runs too."""
    for run in range(2):
        with running(pump_run(tmp_path, Counter(), cluster_id=None)):
            client = Client(f"unix:{tmp_path}/p.sock")
            if run == 0:
                assert client.write(b"", cluster=2222) == "", "a question, of which nothing is stored"
                assert client.write(encode.binlog(PREWRITE, 1000, key=b"k")) == ""
            refused = encode.binlog(PREWRITE, 2000 + run, key=b"k")
            assert client.write(refused, cluster=2222) == "this Pump is of cluster 7, not of 2222"
            assert client.write(encode.binlog(COMMIT, 1000, 1001), cluster=2222) != ""
            with pytest.raises(grpc.RpcError, match="not of 2222"):
                next(client.pull(0, cluster=2222))
            client.close()
    assert [binlog_of(payload).start_ts for payload in sent(tmp_path)] == [1000]
    assert stored(tmp_path)[-1].server_uuid == "7"
    assert captured_server(LakeFiles(str(tmp_path / "lake")), "one") == NO_SERVER, (
        "snapshots are read at any of its TiDBs"
    )


def test_a_pipeline_file_that_names_another_cluster_than_what_is_captured_is_refused(tmp_path: Path) -> None:
    with running(pump_run(tmp_path, Counter())):
        client = Client(f"unix:{tmp_path}/p.sock")
        assert client.write(encode.binlog(PREWRITE, 1000, key=b"k")) == ""
        client.close()
    with pytest.raises(PositionLost, match="this Pump is of cluster 8, not of 7, and its segments are of that one"):
        pump_run(tmp_path, Counter(), cluster_id=8).run(5)


def test_a_timestamp_from_the_future_is_refused_and_honest_writes_go_on(tmp_path: Path) -> None:
    with running(pump_run(tmp_path, Counter())):
        client = Client(f"unix:{tmp_path}/p.sock")
        for poison in (encode.binlog(PREWRITE, 1 << 62, key=b"k"), encode.binlog(COMMIT, 1000, 1 << 62)):
            assert "can't be PD's" in client.write(poison)
        assert client.write(fake_payload(5)) == "only a Pump writes such a binlog"
        assert client.write(encode.binlog(PREWRITE, 1000, key=b"k")) == ""
        client.close()
    assert stored(tmp_path)[-1].resolved_ts <= 1000


@pytest.mark.parametrize("by", ["bronze", "the pipeline file"])
def test_a_pump_is_of_its_siblings_cluster_whoever_writes_to_it_first(tmp_path: Path, by: str) -> None:
    """A clone of a TiDB has the same ids of tables: its rows would go into the same ones."""
    said = ", cluster_id: 7" if by == "the pipeline file" else ""
    pumps = ", ".join(
        f"{name}: {{conn_id: c, flavour: tidb, listen: ['unix:{tmp_path}/{name}.sock']{more}}}"
        for name, more in (("one", said), ("two", ""))
    )
    text = (
        f"{{pipeline: test, lake: {{path: {tmp_path / 'lake'}}}, sources: {{{pumps}}}, tables: {{include: ['*.*']}}}}"
    )
    if not said:
        with running(pump_run(tmp_path, Counter(), cluster_id=None)):
            client = Client(f"unix:{tmp_path}/p.sock")
            assert client.write(encode.binlog(PREWRITE, 1000, key=b"k")) == ""
            client.close()
    nobody = ConnectionInfo("127.0.0.1", 1)
    with running(opened_run(parse(text, where="p"), "two", nobody, tmp_path, LakeFiles(str(tmp_path / "lake")))):
        client = Client(f"unix:{tmp_path}/two.sock")
        refused = client.write(encode.binlog(PREWRITE, 2000, key=b"k"), cluster=2222)
        assert refused == "this Pump is of cluster 7, not of 2222"
        assert client.write(encode.binlog(PREWRITE, 2001, key=b"k")) == ""
        client.close()
