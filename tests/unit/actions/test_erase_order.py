"""What is said of an erasure: nothing of the condition's values.

In:  texts of lines and errors, conditions.
Out: the texts without them.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tidegate.actions import erase_order
from tidegate.actions.desk import Desk
from tidegate.actions.erase_order import _hidden, without_values
from tidegate.config import parse
from tidegate.connections import from_environment
from tidegate.erase.erasure import Order
from tidegate.errors import LakeRefused, SourceUnavailable, UsageError
from tidegate.lake.files import LakeFiles
from tidegate.lake.people.audit import Author


@pytest.mark.parametrize(
    ("text", "where", "shown"),
    [
        ("'ada@example' is no date: YYYY-MM-DD", "born = 'ada@example'", "'...' is no date: YYYY-MM-DD"),
        ("id = 4711: no; version 47110 of 4711.5", "id = 4711", "...: no; version 47110 of ....5"),
        ("it's O'Neill", "name = 'O''Neill'", "it's ..."),
        (r"said 'a\nb'", "note = 'a\nb'", "said '...'"),
        ("keys (1, 'b')", "(id = 1) AND (code IN ('b', 'c'))", "keys (..., '...')"),
        ("nothing of it", "id IS NULL", "nothing of it"),
    ],
)
def test_no_value_of_the_condition_is_shown(text: str, where: str, shown: str) -> None:
    assert without_values(text, where) == shown


def test_an_error_keeps_its_class_and_loses_the_values() -> None:
    for kind in (LakeRefused, SourceUnavailable):
        error = _hidden(kind("row ada is odd", where="shop.t", remedy="mend ada"), "name = 'ada'")
        assert type(error) is kind
        assert str(error) == "shop.t: row ... is odd; mend ..."


def test_of_a_condition_that_is_not_understood_nothing_is_shown() -> None:
    error = _hidden(UsageError('not understood at character 8: "\'ada"'), "name = 'ada")
    assert isinstance(error, UsageError)
    assert "ada" not in str(error)
    assert "at character" in str(error)


@pytest.mark.parametrize("keys", [0, 2])
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_order_that_fits_no_row_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: int, dry_run: bool
) -> None:
    """A mistyped number would give a certificate, and the person's rows would stay."""
    erased = SimpleNamespace(keys=keys, line="done", planned="plan", places=SimpleNamespace(certified={}))
    work = SimpleNamespace(run=lambda: [erased], plan=lambda: [erased])
    monkeypatch.setattr(erase_order, "Erasure", lambda *_: work)
    text = "{pipeline: p, lake: {path: l}, sources: {s: {conn_id: c, flavour: mysql}}, tables: {include: ['*.*']}}"
    desk = Desk(parse(text, where="p.yaml"), LakeFiles(str(tmp_path)), from_environment, Author("ann", "here"))
    lines = list[str]()
    erase_order.carry_out(desk, Order("d.t", "id = 4171"), None, lines.append, dry_run=dry_run)  # type: ignore[arg-type]
    assert lines == ([] if keys else ["d.t: no row in the lake is one of these: was the condition meant so?"])
