"""What is said of an erasure: nothing of the condition's values.

In:  texts of lines and errors, conditions.
Out: the texts without them.
"""

from __future__ import annotations

import pytest

from tidegate.actions.erase_order import _hidden, without_values
from tidegate.errors import LakeRefused, SourceUnavailable, UsageError


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
