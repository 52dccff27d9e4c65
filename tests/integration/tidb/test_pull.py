"""A drainer pulls what is committed: each transaction once, with its rows, in order, from wherever it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import grpc
import pytest

from tests.kit.tidb import encode
from tests.kit.tidb.pump_world import Client, Counter, pump_run, running
from tidegate.tidb.records.payload import Binlog, BinlogType, binlog_of

SECOND = 1000 << 18
LAST = 900 * SECOND


def written(client: Client, counter: Counter) -> dict[int, tuple[int, bytes]]:
    """commit_ts -> (start_ts, rows): late, out of order, repeated, rolled back; one has no answer until the end."""
    found = {}
    for n in range(1, 9):
        start_ts, commit_ts = (100 + 10 * n) * SECOND, (205 - 10 * n if n % 2 else 205 + 10 * n) * SECOND
        commit_ts = max(commit_ts, start_ts + n)
        rows = encode.binlog(BinlogType.PREWRITE, start_ts, key=b"k%d" % n, value=encode.bytes_field(9, b"%d" % n))
        client.write(rows)
        if n == 3:
            client.write(rows)
            client.write(encode.binlog(BinlogType.ROLLBACK, start_ts))
            continue
        found[commit_ts] = (start_ts, b"k%d" % n)
    for commit_ts, (start_ts, _) in sorted(found.items(), key=lambda one: one[1][1]):
        client.write(encode.binlog(BinlogType.COMMIT, start_ts, commit_ts))
    client.write(encode.binlog(BinlogType.COMMIT, *next((start, ts) for ts, (start, _) in found.items())))
    client.write(encode.ddl(BinlogType.PREWRITE, LAST - 5, 0, 7, b"create table t (a int)"))
    client.write(encode.ddl(BinlogType.COMMIT, LAST - 5, LAST, 7, b"create table t (a int)"))
    counter.floor = 1000 * SECOND
    return found


def until_last(stream: Iterator[tuple[int, bytes]]) -> list[tuple[int, Binlog]]:
    """What comes up to the DDL at LAST, and the places as the stream tells them."""
    told = ((place, binlog_of(payload)) for place, payload in stream)
    return list(takewhile(lambda one: one[0] <= LAST, told))


def test_a_drainer_gets_each_transaction_once_and_in_order(tmp_path: Path) -> None:
    counter = Counter(SECOND)
    with running(pump_run(tmp_path, counter)):
        client = Client(f"unix:{tmp_path}/p.sock")
        wanted = written(client, counter)
        all_of_it = until_last(client.pull(0))
        assert [place for place, _ in all_of_it] == sorted({place for place, _ in all_of_it})
        commits = [one for _, one in all_of_it if not one.is_fake]
        assert {one.tp for one in commits} == {BinlogType.COMMIT}
        assert [(one.commit_ts, (one.start_ts, one.prewrite_key)) for one in commits[:-1]] == sorted(wanted.items())
        assert all(one.prewrite_value == encode.bytes_field(9, one.prewrite_key[1:]) for one in commits[:-1])
        ddl = commits[-1]
        assert (ddl.commit_ts, ddl.ddl_job_id, ddl.ddl_query) == (LAST, 7, b"create table t (a int)")
        assert any(one.is_fake for _, one in all_of_it) or client.pull(LAST)
        for after_ts in [*sorted(wanted)[::3], LAST - 1]:
            later = [one.commit_ts for _, one in until_last(client.pull(after_ts)) if not one.is_fake]
            assert later == [ts for ts in [*sorted(wanted), LAST] if ts > after_ts]
        place, payload = next(client.pull(LAST))
        assert place > LAST
        assert binlog_of(payload).is_fake, "time goes on"
        client.close()
    with running(pump_run(tmp_path, counter)):  # what was acknowledged is there for another run's drainers, too
        client = Client(f"unix:{tmp_path}/p.sock")
        assert len([one for _, one in until_last(client.pull(0)) if not one.is_fake]) == len(wanted) + 1
        client.close()


def test_a_drainer_of_another_cluster_is_refused_and_an_open_stream_ends_with_the_pump(tmp_path: Path) -> None:
    counter = Counter(SECOND)
    with running(pump_run(tmp_path, counter)):
        client = Client(f"unix:{tmp_path}/p.sock")
        with pytest.raises(grpc.RpcError) as refused:
            next(client.pull(0, cluster=8))
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        stream = client.pull(0)
        next(stream)
    with suppress(grpc.RpcError):
        assert len(list(stream)) < 1000
    client.close()


def test_what_waits_for_its_answer_is_pulled_by_nobody(tmp_path: Path) -> None:
    counter = Counter(SECOND)
    with running(pump_run(tmp_path, counter)):
        client = Client(f"unix:{tmp_path}/p.sock")
        client.write(encode.binlog(BinlogType.PREWRITE, 100 * SECOND, key=b"waits"))
        client.write(encode.binlog(BinlogType.PREWRITE, 110 * SECOND, key=b"done"))
        client.write(encode.binlog(BinlogType.COMMIT, 110 * SECOND, 120 * SECOND))
        counter.floor = 500 * SECOND
        with suppress(grpc.RpcError):
            for _, payload in client.pull(0, seconds=4):
                assert binlog_of(payload).is_fake
                assert binlog_of(payload).start_ts <= 100 * SECOND
        client.write(encode.binlog(BinlogType.COMMIT, 100 * SECOND, 130 * SECOND))
        told = (binlog_of(payload) for _, payload in client.pull(0))
        commits = [one.prewrite_key for one in takewhile(lambda one: one.commit_ts <= 130 * SECOND, told) if one.tp]
        assert [key for key in commits if key] == [b"done", b"waits"]
        client.close()
