"""Other rooms ask a table's mode (merge/past), and name none, so that a new mode can't be forgotten.

In:  the product's modules outside the room of the modes.
Out: the places that name a mode: by its object, a column of its own or its key. More than there were fail.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.style.measures import sources

ROOM = ("include/tidegate/merge/past/", "include/tidegate/merge/version_sql.py")  # the modes, and the statements of one
# Places that are left, for a reason. Never more.
LEFT = {
    "include/tidegate/config/table_keys/tables.py": 4,  # the keys themselves
    "include/tidegate/tables/__init__.py": 5,  # the names of the columns
    "include/tidegate/verify/silver_side.py": 9,  # verify shares no code with the writers
    "spark_jobs/positional/versions.py": 9,  # the positional writer of versions
}
COLUMNS = {"DELETED", "VALID_FROM", "VALID_TO", "IS_CURRENT", "FROM_KNOWN"}
NAMES = {"SOFT_DELETE", "HISTORY", "soft_delete", "keeps_deleted", "keeps_history"}
_TEXT = re.compile(r"\bsoft[_ ]delete|\btables\.history\b|_tg_(deleted|valid_|is_current|from_known)")


def test_no_place_that_names_a_mode_is_added() -> None:
    named = Counter({source.name: len(list(places(source.tree))) for source in sources() if not _is_room(source.name)})
    assert +named == LEFT, "ask the table's Past (merge/past/form.py), or add a question to it"


def _is_room(name: str) -> bool:
    return name.startswith(ROOM)


def places(tree: ast.Module) -> Iterator[ast.AST]:
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="tables"), attr=name) if name in COLUMNS:
                yield node
            case ast.ImportFrom(module="tidegate.tables", names=names):
                yield from (name for name in names if name.name in COLUMNS)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in NAMES:
                yield node
            case ast.Constant(value=str(text)) if id(node) not in docs and _TEXT.search(text):
                yield node
            case _:
                pass


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("from tidegate.merge.past import HISTORY", 1),
        ("if shape.past is SOFT_DELETE: pass", 1),
        ("rows.where(tables.DELETED)", 1),
        ("why = f'{count} rows, and tables.history is on'", 1),
        ("why = 'take it out of soft_delete'", 1),
        ("'''soft_delete keeps it.'''", 0),
        ("history = app.histories[source]", 0),
        ("if shape.past.rows_stay: pass", 0),
    ],
)
def test_a_place_is_seen(code: str, count: int) -> None:
    assert len(list(places(ast.parse(code)))) == count
