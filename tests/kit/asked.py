"""Roads of tables whose values are asked for at the source.

In:  a server, statements in its database `one`.
Out: a captured road; what waits after apply, and why.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.kit.road import Road
from tidegate.local.server import Server
from tidegate.tables import State


def run(server: Server, *statements: str) -> None:
    with server.connect("one") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            connection.commit()


def begun(server: Server, folder: Path, *statements: str, extra: str = "", apply: str = "") -> Road:
    server.query("CREATE OR REPLACE DATABASE one")
    road = Road(server, folder, include="one.*", extra=extra, apply=apply)
    road.capture()
    run(server, *statements)
    road.capture()
    return road


def waiting_in(road: Road, spark: SparkSession) -> dict[str, str]:
    return {name: state.reason for name, state in road.apply(spark).states.items() if state.state is not State.ACTIVE}
