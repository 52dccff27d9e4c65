"""The tools of an apply application: its lake, the index of bronze, control tables, Spark, threads.

In:  a pipeline and its lake.
Out: Handles. They know nothing of the state of a table.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from spark_jobs.session.background import BackgroundSession
from spark_jobs.session.mask_keys import mask_keys
from spark_jobs.session.source_logins import source_logins
from spark_jobs.window.checkpoints import Checkpoints
from tidegate import tables
from tidegate.config import Pipeline
from tidegate.delta.leases.lease import Lease
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.control import ControlTables
from tidegate.lake.cuts.published import newest_published_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.standing.held import behind
from tidegate.limits import AT_ONCE_TABLES_MIN, PROBE_GROUPS_BYTES_MAX
from tidegate.upsert.keys.bounds import KnownGroups
from tidegate.upsert.keys.hash import Seed
from tidegate.upsert.keys.key_indexes import KeyIndexes
from tidegate.upsert.keys.probe_file import Earlier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The control tables that apply alone appends to. control/cuts comes first: an application that has
# lost it must write nothing more.
CLAIMED = (
    tables.CUTS,
    tables.TABLE_STATES,
    tables.SCHEMA_HISTORY,
    tables.FOLLOWED,
    tables.SNAPSHOTS,
    tables.PREWRITES,
    tables.LEDGER,
    tables.LATENCY,
)


@dataclass
class Handles:
    """background: Spark, perhaps not there yet. lease: of apply, or of rebuild; none in a test.
    pool: for reads of tables' logs and files, and for commits. A task in it must not wait for
    another task in it. key_seed: of key hashes, in all windows. earlier: earlier windows' knowledge
    of silver's files. mask_keys: by the id of a connection. source_logins: by source.
    """

    background: BackgroundSession
    pipeline: Pipeline
    lake: LakeFiles
    index: BronzeIndex
    lease: Lease | None = None

    def __post_init__(self) -> None:
        self.control = ControlTables(self.lake)
        self._published_at: datetime | None = None  # of the newest row of control/cuts
        self.checkpoints = Checkpoints(self.lake)
        # Random: a person who writes keys to a source must not know which keys collide.
        self.key_seed: Seed = (secrets.randbits(64), secrets.randbits(64))
        indexes = KeyIndexes(self.lake, self.key_seed, self.pipeline.apply.key_index_bytes)
        self.earlier = Earlier(KnownGroups(PROBE_GROUPS_BYTES_MAX), indexes)
        self.mask_keys = mask_keys(self.pipeline)
        self.source_logins = source_logins(self.pipeline)
        self.pool = ThreadPoolExecutor(max(AT_ONCE_TABLES_MIN, self.pipeline.apply.parallel_tables), "table")

    @property
    def spark(self) -> SparkSession:
        """Waits for Spark: a small window needs none. Raises SparkUnavailable, ConfigError."""
        return self.background.session

    def claim(self) -> None:
        """Claim apply's control tables: from now on an older application that is still alive fails
        to write them.

        The older one's cut would be right for the tables it knows, but not for one that joined or
        was released since. Its table states would count as news.
        """
        claimed = partial(self.control.claim, claim_id=f"tidegate/{self.pipeline.pipeline}/apply")
        list(self.pool.map(claimed, CLAIMED))

    def check_claim(self) -> None:
        """Raises Overtaken when another application has started since, or this one's lease is lost."""
        if self.lease is not None:
            self.lease.check()
        self.control.check(tables.CUTS)

    def publish(self, rows: Sequence[Mapping[str, Any]], app_transaction: tuple[str, int] | None = None) -> None:
        """Append to control/cuts, after all rows of earlier windows. Raises Overtaken."""
        if self.lease is not None:
            self.lease.check()
        if rows:
            if self._published_at is None:
                self._published_at = newest_published_at(self.lake)
            at = behind(self._published_at, max(row["published_at"] for row in rows))
            rows, self._published_at = [{**row, "published_at": at} for row in rows], at
        self.control.append(tables.CUTS, rows, app_transaction)

    @property
    def cuts_app_id(self) -> str:
        """The application id of the newest published cut_ts in control/cuts, recorded in the
        publishing commit.
        """
        return f"tidegate/{self.pipeline.pipeline}/cuts"
