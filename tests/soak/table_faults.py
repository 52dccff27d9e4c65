"""Faults of tables and of apply: tables that join, leave, are held and go on; several applies, killed and asleep.

In:  the world, a fault's parameters.
Out: KINDS: functions as those of faults.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pymysql

from tests.soak.source import DATABASE
from tests.soak.world import World


def rewrite_file(world: World, excluded: tuple[str, ...], listed: bool) -> None:
    """Whoever runs now goes on with the file that it read."""
    world.kept.write(excluded, listed=listed)


def start_apply(world: World, mode: str, point: str) -> None:
    if world.disturbs_apply:
        world.applies.start(mode=mode, point=point)


def second_apply(world: World, mode: str, sleep: float) -> None:
    """One starts while another one runs, or is asleep and doesn't know that it was taken for dead."""
    if not world.disturbs_apply:
        return
    running = world.applies.applies()
    one = running[0] if running else world.applies.start(mode="micro_batch")
    if one is not None and sleep:
        world.applies.stop(one, sleep)
    world.applies.start(mode=mode)


def retry_apply(world: World, after: float) -> None:
    """A task's process is killed and tried again at once."""
    time.sleep(after)
    if world.applies.kill_one():
        world.applies.start(mode="micro_batch")


def maintain(world: World) -> None:
    if world.disturbs_apply:
        world.applies.start(mode="", job="maintain")


def drop_column(world: World, table: str) -> None:
    """`ddl: {drop_column: ask}`: a person has to agree."""
    if world.sessions.drop_column(table):
        world.kept.explain(table, "asked")


def approve(world: World) -> None:
    world.approve()


def truncate(world: World, table: str) -> None:
    world.server.query(f"TRUNCATE TABLE {table}", database=DATABASE)


def recreate(world: World, table: str) -> None:
    world.sessions.recreate(table)


def rename(world: World, table: str, seconds: float) -> None:
    """Away and back again; a file that lists names doesn't keep it meanwhile."""
    world.kept.explain(table, "renamed")
    world.server.query(f"RENAME TABLE {table} TO {table}_away", database=DATABASE)
    time.sleep(seconds)
    world.server.query(f"RENAME TABLE {table}_away TO {table}", database=DATABASE)


def statement(world: World, table: str) -> None:
    """A change that the log has as a statement, which nobody can follow."""
    world.kept.explain(table, "statement")
    column = {"keyed": "b", "pairs": "v", "bag": "a", "notes": "t"}[table]
    with world.server.connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        for _ in range(20):
            try:
                cursor.execute(f"UPDATE {table} SET {column} = {column} WHERE {column} IS NOT NULL LIMIT 1")
                break
            except pymysql.err.OperationalError:  # its rows are locked
                time.sleep(0.05)


KINDS: Final[dict[str, Callable[..., None]]] = {
    function.__name__: function
    for function in (
        *(rewrite_file, start_apply, second_apply, retry_apply, maintain),
        *(drop_column, approve, truncate, recreate, rename, statement),
    )
}
