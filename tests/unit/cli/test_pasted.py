"""What a person pastes out of a message stands on one line of it, however narrow the terminal is."""

from __future__ import annotations

import pytest

from tidegate.standing.causes import Cause
from tidegate.standing.shown import way_out
from tidegate.standing.standing import Place, Standing
from tidegate.tables import State
from tidegate.text_layout import paragraph

_PLACE = Place("main", "shop", "orders", "binlog.000007", 4711, 9, "ALTER TABLE orders DROP COLUMN a")


@pytest.mark.parametrize(
    ("text", "pasted"),
    [
        ("approve it in Airflow, or by: tidegate release shop shop.orders", "tidegate release shop shop.orders"),
        ("at once by tidegate snapshot start shop shop.orders; or", "tidegate snapshot start shop shop.orders;"),
        ("or do what `.venv/bin/tidegate status shop --json` says", "`.venv/bin/tidegate status shop --json`"),
        ("first give it: GRANT XA_RECOVER_ADMIN ON *.* TO 'a'@'%'", "GRANT XA_RECOVER_ADMIN ON *.* TO 'a'@'%'"),
        ("then run SET GLOBAL binlog_row_image = FULL; and wait", "SET GLOBAL binlog_row_image = FULL;"),
    ],
)
def test_a_command_in_a_message_never_breaks(monkeypatch: pytest.MonkeyPatch, text: str, pasted: str) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = paragraph("", text)
    assert any(pasted in line for line in lines), lines
    assert " ".join(" ".join(lines).split()) == text, "nothing else is changed"


@pytest.mark.parametrize("cause", Cause)
def test_the_way_out_of_each_hold_can_be_pasted(monkeypatch: pytest.MonkeyPatch, cause: Cause) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    partner, times = "shop.other" * (cause is Cause.WAITS_WITH), int(cause is Cause.WRITE_FAILED)
    held = Standing(
        State.HELD, "why", cause, 5, _PLACE, partner=partner, times=times, pipeline="shop", table="shop.orders"
    )
    text = way_out(held)
    whole = [line for line in paragraph("", text) if "tidegate " in line]
    assert text.count("tidegate ") == sum(line.count("tidegate ") for line in whole)
    for line in whole:
        command = line.partition("tidegate ")[2]
        assert "shop" in command, f"{line!r} ends in the middle of a command"
