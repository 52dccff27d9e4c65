"""The keys of the JSON of a look (plain.py), each with its meaning; docs/reference/api.md is made of them.

In:  nothing; this is data.
Out: KEYS, in the order of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KEYS: Final[Mapping[str, str]] = {
    "pipeline": "the pipeline's name",
    "state": "its state in [one word](../page.md#all-pipelines)",
    "why": "the state, as a sentence",
    "cut_ts": "the newest cut: silver is complete up to it; 0 before the first",
    "cut_at": "the same as a time",
    "lag_seconds": "how far silver is behind its sources, held tables aside; 0 while nothing is missing",
    "nothing_missing": "true if silver has all of the sources, held tables aside",
    "ahead": "true if the cut is of a source's future, and apply goes no further",
    "slowest": "why silver is behind: `hop` is `capture` or `apply`; null while nothing is missing",
    "sources": "per source: the captured place, the server's answer, and the lag in seconds and"
    " bytes. `purge`, `if_down`: when it purges uncaptured log. `lost`: the way out,"
    " if an empty lake is in the place of a lost one",
    "silences": "stopped work, capture of a source or apply. `sign`: `killed`, `silent`, or"
    " `ended` by itself. `of`: the source. `dag`, `way_out`: how it begins again",
    "holders": "work in progress: the `host` of its process, `since` when",
    "skew_seconds": "the largest difference between the clocks of the sources",
    "tables": "per table: its state, and of a held one the cause, the reason, and the way out."
    " `size`: `rows`, `files` and `bytes` of silver. `fault`: the class of its error",
    "unseen": "tables of the sources without a change yet",
    "rebuilt": "tables made by `tidegate rebuild` beside silver",
    "verified": "per table: the last verdict, and its commit_ts",
    "verification": "of all tables: the number of each outcome. `through_ts`: what was equal has no fault"
    " up to it. `never`: the number of tables without a verification",
    "snapshots": "per table under a snapshot: its rows read, of about how many, and how fast",
    "snapshots_left": "of all of these together. `done_at`: when all will be read",
    "schema_changes": "the newest five statements about columns. `physical`: the table at the source."
    " `in_silver`: true if silver has it",
    "prewrites": "up to 100 prepared transactions without an answer: columns of `control/prewrites`",
    "maintenance": "the last run of maintain: its steps with sums, up to 20 of `left_count` things"
    " left for the next run. null before the first",
    "capture": "per source captured on this machine: its value log's bytes, room and rate",
    "history": "60 steps of `step_seconds` up to `end`: lag, longest time between two cuts,"
    " rows, bytes. `capture_cpu`, `apply_cpu`: CPU seconds a second. `?span=day` and"
    " `?span=week` choose longer ones",
}
