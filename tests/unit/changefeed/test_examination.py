"""What `tidegate check` says of a changefeed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.changefeed_writer import CREATE_PLAIN, ID, PLAIN, Change, Changefeed, plain, ts
from tidegate.cli import main
from tidegate.commit_ts import compose, time_text
from tidegate.home import EXIT_ERROR


def checked(feed: Changefeed, caught: pytest.CaptureFixture[str], extra: str = "") -> tuple[int, str]:
    file = feed.path.with_name("p.yaml")
    file.write_text(
        f"pipeline: p\nlake: {{path: {feed.path.with_name('lake')}}}\ntables: {{include: ['shop.*']}}\n"
        f"sources: {{one: {{flavour: ticdc, protocol: canal-json, time_zone: UTC, path: '{feed.path}'{extra}}}}}\n"
    )
    with pytest.raises(SystemExit) as ended:
        main.run(["check", str(file)])
    return int(ended.value.code or 0), " ".join(caught.readouterr().out.split())


def test_check_says_which_tables_wait_and_what_capture_would_refuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = Changefeed(tmp_path / "feed")
    assert "has no checkpoint yet" in checked(feed, capsys)[1]
    feed.ddl("shop.t", ts(1), CREATE_PLAIN.format("shop", "t"), 3, PLAIN)
    feed.rows("shop.t", Change(ts(2), plain(1, "one")))
    feed.checkpoint(compose(int(time.time() * 1000)))
    code, told = checked(feed, capsys)
    assert code == 0, told
    assert "1 table matches tables.include" in told
    feed.found("shop.old", ts(0), {"id": ID, "e": {"ColumnType": "ENUM"}})
    feed.found("shop.keyless", ts(0), {"e": {"ColumnType": "INT"}})
    code, told = checked(feed, capsys)
    assert code == EXIT_ERROR
    assert "HELD: shop.keyless, shop.old: there when the changefeed began: rows from before aren't in its files" in told
    assert "HELD: shop.keyless: no primary key" in told
    assert "HELD: shop.old: columns of type ENUM" in told
    assert "HELD: shop.keyless, shop.old: there" not in checked(feed, capsys, ", all_rows: true")[1]
    file = feed.rows("shop.t", Change(ts(3), plain(1, "one")))
    file.write_bytes(file.read_bytes().replace(b'"_tidb"', b'"tidb"'))
    code, told = checked(feed, capsys)
    assert "REFUSED" in told
    assert "enable-tidb-extension=true" in told
    feed.checkpoint(ts(3))
    with pytest.raises(SystemExit):
        main.run(["status", str(feed.path.with_name("p.yaml"))])
    assert f"it is written up to {time_text(ts(3))}" in " ".join(capsys.readouterr().out.split())
    assert "is the changefeed running?" in checked(feed, capsys)[1]
