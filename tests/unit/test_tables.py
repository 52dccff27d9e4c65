"""Names that are made of the source's: never one for two, and fit for where they go."""

from __future__ import annotations

import random

from tidegate.silver_names import silver_column
from tidegate.tables import silver_path


def test_names_of_columns_stay_apart_and_hold_nothing_that_delta_refuses() -> None:
    rng = random.Random(5)
    letters = "abcAB_tgTG~209f ,;{}()\n\t=`.\u00df\u1e9e\u00e4\u212a\u2126\u0130\u540d"
    names = {"".join(rng.choices(letters, k=rng.randrange(1, 7))) for _ in range(20_000)}
    names |= {"_tg_op", "_TG_op", "~5f~tg_op", "~7e~5f~7e~tg_op"}
    made = {silver_column(name) for name in names}
    assert len(made) == len(names)
    assert not [name for name in made if set(name) & set(" ,;{}()\n\t=`") or name.lower().startswith("_tg_")]
    assert silver_column("\u00df") == "\u00df"
    assert len({silver_column(name).lower() for name in ("\u00df", "\u1e9e", "k", "\u212a")}) == 4


def test_no_folder_is_called_as_a_log_is() -> None:
    """DuckDB and Polars look for the table above it."""
    assert silver_path("_delta_log", "_delta_log") == "silver/~5f~delta_log/~5f~delta_log"
    assert silver_path("_delta_logs", "_samples") == "silver/_delta_logs/_samples"


def test_long_names_of_tables_fit_a_folders_name_and_stay_apart() -> None:
    long = ["\u540d" * 64, "\u540d" * 63 + "\u5b57", "\u540d" * 43, "a" * 64]
    made = [silver_path("d", name).rsplit("/", 1)[1] for name in long]
    assert len(set(made)) == len(long)
    assert max(len(part.encode()) for part in made) < 240
    assert silver_path("d", "\u540d" * 20) == "silver/d/" + "~540d~" * 20
