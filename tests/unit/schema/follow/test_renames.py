"""Which table a renamed one was, by column identity: a plain dict of names as the oracle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.schema.ddl.statement import DdlStatement
from tidegate.schema.follow.renames import Rename, renames
from tidegate.schema.model.columns import TableVersion, VersionStatus
from tidegate.schema.replay.history import SchemaHistory


class Script:
    """A history that statements are replayed onto, one second apart."""

    def __init__(self, keeps: str = "") -> None:
        self.history = SchemaHistory("s", keeps=lambda _, table: table.startswith(keeps))
        self.at = 0

    def run(self, sql: str) -> list[TableVersion]:
        self.at += 1
        statement = DdlStatement(
            sql=sql, database="d", sql_mode=0, commit_ts=self.at, file="b.000001", pos=self.at,
            timestamp_us=0, charset="utf8mb4", server_version="9.7.0",
        )  # fmt: skip
        return self.history.replay(statement)

    def renamed(self) -> list[Rename]:
        return renames(self.history, self.at - 1, self.at)


def names(found: list[Rename]) -> dict[str, str]:
    return {r.new.table: r.old.table if r.old else "" for r in found}


def test_a_swap_a_chain_and_an_alter_name_their_origin() -> None:
    s = Script()
    for table in "abc":
        s.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    s.run("RENAME TABLE a TO x, b TO a, x TO b")
    assert names(s.renamed()) == {"a": "b", "b": "a"}
    s.run("RENAME TABLE a TO x, x TO y, y TO z")
    assert names(s.renamed()) == {"z": "a"}
    s.run("ALTER TABLE c DROP COLUMN v, ADD w INT, RENAME TO a")
    assert names(s.renamed()) == {"a": "c"}


def test_a_name_that_is_used_again_is_not_the_one_that_went() -> None:
    s = Script()
    s.run("CREATE TABLE a (id INT)")
    s.run("RENAME TABLE a TO b")
    s.run("CREATE TABLE a (id INT)")
    assert s.renamed() == []
    s.run("RENAME TABLE b TO c, a TO b")
    assert names(s.renamed()) == {"b": "a", "c": "b"}


def test_a_table_from_a_name_that_is_not_kept_needs_a_snapshot() -> None:
    s = Script(keeps="kept")
    s.run("CREATE TABLE other (id INT)")
    s.run("RENAME TABLE other TO kept")
    (found,) = s.renamed()
    assert found.new.status is VersionStatus.NEEDS_SNAPSHOT
    s.run("RENAME TABLE kept TO kept_too")
    (found,) = s.renamed()
    assert found.new.status is VersionStatus.NEEDS_SNAPSHOT, "it goes with the table"


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=5), max_size=6))
def test_any_statement_of_renames_gives_what_a_dict_of_names_gives(statements: list[list[tuple[str, str]]]) -> None:
    s = Script()
    lives: dict[str, str] = {}
    for table in "abc":
        s.run(f"CREATE TABLE {table} (id_{table} INT)")
        lives[table] = table
    for pairs in statements:
        after = dict(lives)
        done = []
        for old, new in pairs:
            if old in after and new not in after:  # the server refuses any other
                after[new] = after.pop(old)
                done.append(f"{old} TO {new}")
        if not done:
            continue
        s.run(f"RENAME TABLE {', '.join(done)}")
        moved = {new: table for new, table in after.items() if lives.get(new) != table}
        at = {table: name for name, table in lives.items()}
        assert names(s.renamed()) == {new: at[table] for new, table in moved.items()}
        lives = after
