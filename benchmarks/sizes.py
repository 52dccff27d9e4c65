"""How much of everything: the formal run, and QUICK, which fits into ten minutes on two cores.

In:  quick or not.
Out: Sizes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """rows_*: inserted rows of a workload (A and B make two thirds as many changes again of them)."""

    name: str
    rows_a: int
    rows_b: int
    changes_c: int
    target_rows: int  # of the silver table that changes go into
    changes_large: int
    changes_small: int
    runs: int  # of cheap roads
    read_times: int  # a run of reading reads a table so often: CPU is counted in hundredths of a second
    runs_apply: int
    runs_road: int
    reference_rows: int  # mysql-replication reads only so many
    decode_seconds: float  # a decode run takes at least this long: passes are repeated
    latency_rates: tuple[int, ...]  # row changes a second
    latency_seconds: float  # per rate
    quiet_seconds: float
    quiet_latency_seconds: float  # per number of tables
    large_table_rows: int
    upserted_rows: int
    upserted_minutes: float
    commits: int  # of one run
    new_tables: int
    checkpoint_files: int
    columns_rows: tuple[int, ...]  # of tables that get other columns
    tidb_writes: int  # of one run
    tidb_unanswered: int
    history_rows: int
    history_changes: int
    history_windows: int
    runs_history: int


FORMAL = Sizes(
    name="formal",
    rows_a=900_000,
    rows_b=1_800_000,
    changes_c=200_000,
    target_rows=10_000_000,
    changes_large=1_000_000,
    changes_small=100_000,
    runs=5,
    read_times=2,
    runs_apply=3,
    runs_road=3,
    reference_rows=20_000,
    decode_seconds=1.0,
    latency_rates=(100, 1_000, 5_000),
    latency_seconds=60.0,
    quiet_seconds=60.0,
    quiet_latency_seconds=15.0,
    large_table_rows=10_000_000,
    upserted_rows=10_000_000,
    upserted_minutes=60.0,
    commits=500,
    new_tables=2_400,
    checkpoint_files=100_000,
    columns_rows=(75_000, 1_000_000),
    tidb_writes=20_000,
    tidb_unanswered=1_000_000,
    history_rows=1_000_000,
    history_changes=100_000,
    history_windows=100,
    runs_history=5,
)
QUICK = Sizes(
    name="quick",
    rows_a=180_000,
    rows_b=360_000,
    changes_c=30_000,
    target_rows=1_000_000,
    changes_large=100_000,
    changes_small=10_000,
    runs=3,
    read_times=6,
    runs_apply=2,
    runs_road=2,
    reference_rows=6_000,
    decode_seconds=0.5,
    latency_rates=(100, 1_000),
    latency_seconds=15.0,
    quiet_seconds=30.0,
    quiet_latency_seconds=10.0,
    large_table_rows=3_000_000,
    upserted_rows=1_000_000,
    upserted_minutes=5.0,
    commits=200,
    new_tables=2_400,
    checkpoint_files=20_000,
    columns_rows=(75_000, 1_000_000),
    tidb_writes=6_000,
    tidb_unanswered=200_000,
    history_rows=1_000_000,
    history_changes=100_000,
    history_windows=50,
    runs_history=3,
)
# For those who work on the benchmarks themselves: every road once, figures without meaning.
TINY = Sizes(
    name="tiny",
    rows_a=10_000,
    rows_b=20_000,
    changes_c=2_000,
    target_rows=50_000,
    changes_large=10_000,
    changes_small=1_000,
    runs=2,
    read_times=1,
    runs_apply=1,
    runs_road=1,
    reference_rows=1_000,
    decode_seconds=0.1,
    latency_rates=(50,),
    latency_seconds=4.0,
    quiet_seconds=5.0,
    quiet_latency_seconds=4.0,
    large_table_rows=200_000,
    upserted_rows=100_000,
    upserted_minutes=0.5,
    commits=20,
    new_tables=50,
    checkpoint_files=500,
    columns_rows=(2_000,),
    tidb_writes=600,
    tidb_unanswered=10_000,
    history_rows=20_000,
    history_changes=2_000,
    history_windows=20,
    runs_history=1,
)
BY_NAME = {sizes.name: sizes for sizes in (FORMAL, QUICK, TINY)}
