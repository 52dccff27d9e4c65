"""The shop does what it says, on both servers: its binlog holds every kind of change the demo promises."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.servers import ROOT
from tidegate.demo import shop_schema
from tidegate.demo.workload import Workload
from tidegate.local.server import Server

pytestmark = pytest.mark.server


def test_shop_changes_rows_of_every_table_and_its_schema_while_open(any_server: Server) -> None:
    workload = Workload(any_server.connect, seconds=6, rate=200)
    workload.create()
    before = {name for (name,) in any_server.query("SHOW TABLES FROM shop")}
    assert len(before) >= 8
    counters = workload.run()
    after = {name for (name,) in any_server.query("SHOW TABLES FROM shop")}
    assert counters.committed > 30  # six seconds of them, on however busy a machine
    assert counters.rolled_back > 5
    assert counters.ddl == len(shop_schema.DDL_OF_THE_DAY)
    assert after - before == {"reviews"}
    assert before - after == {"coupons"}
    counts = {table: any_server.query(f"SELECT count(*) FROM shop.`{table}`")[0][0] for table in after}
    assert all(counts.values()), counts
    assert any_server.query("SELECT count(*) FROM shop.orders WHERE channel <> 'web'")[0][0] > 0
    duplicates = (
        "SELECT count(*) FROM (SELECT 1 FROM shop.page_views GROUP BY at, customer_id, path, milliseconds"
        " HAVING count(*) > 1) d"
    )
    assert any_server.query(duplicates)[0][0] > 0
    any_server.query("DROP DATABASE shop")


def test_binlog_holds_key_changes_and_multi_statement_transactions(mysql9: Server) -> None:
    workload = Workload(mysql9.connect, seconds=4, rate=200, seed=3)
    workload.create()
    mysql9.query("FLUSH BINARY LOGS")
    workload.run()
    newest = max((mysql9.data / "data").glob("binlog.0*"))
    text = subprocess.run(
        [ROOT / ".tidegate/mysql9/bin/mysqlbinlog", "--no-defaults", "-v", "--base64-output=decode-rows", newest],
        capture_output=True,
        check=True,
    ).stdout.decode(errors="replace")
    for kind in ("Write_rows", "Update_rows", "Delete_rows"):
        assert kind in text
    changed = re.findall(
        r"### UPDATE `shop`.`products`\n### WHERE\n###   @1='(\S+)'.*?### SET\n###   @1='(\S+)'", text, re.DOTALL
    )
    assert any(old != new for old, new in changed), "no product changed its key"
    transactions = re.split(r"\nBEGIN\n", text)
    assert any(len(set(re.findall(r"table id (\d+)", one))) >= 3 for one in transactions)
    mysql9.query("DROP DATABASE shop")
