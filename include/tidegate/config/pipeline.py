"""A pipeline file as a whole: its sections.

In:  the file's mapping, as pydantic gets it.
Out: a Pipeline, frozen.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from tidegate import limits
from tidegate.config.alerts import Alerts
from tidegate.config.apply import Apply, ApplyMode
from tidegate.config.capture import Capture
from tidegate.config.completeness import Completeness
from tidegate.config.ddl import Ddl
from tidegate.config.erase_rights import Erase
from tidegate.config.lake import Lake
from tidegate.config.maintain import Maintain
from tidegate.config.section import Section
from tidegate.config.snapshot import Snapshot
from tidegate.config.source_keys.sources import MysqlSource, Source
from tidegate.config.table_keys.tables import Tables
from tidegate.config.verify import Verify
from tidegate.config.xa import Orphans, Xa
from tidegate.errors import ConfigError
from tidegate.table_names import splits

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]


class Pipeline(Section):
    """A pipeline file."""

    pipeline: Name = Field(description="Name of the pipeline. DAG ids are <name>__capture, <name>__apply and so on")
    lake: Lake
    sources: dict[Name, Source] = Field(min_length=1)
    tables: Tables
    capture: Capture = Field(default_factory=Capture)
    apply: Apply = Field(default_factory=Apply)
    ddl: Ddl = Field(default_factory=Ddl)
    maintain: Maintain = Field(default_factory=Maintain)
    snapshot: Snapshot = Field(default_factory=Snapshot)
    verify: Verify = Field(default_factory=Verify)
    erase: Erase = Field(default_factory=Erase)
    completeness: Completeness = Field(default_factory=Completeness)
    xa: Xa = Field(default_factory=Xa)
    alerts: Alerts = Field(default_factory=Alerts)

    @model_validator(mode="after")
    def _logs_are_apart(self) -> Self:
        first = dict[str, str]()
        for name, source in self.sources.items():
            if (log := source.traits.log) is not None and (other := first.setdefault(log, name)) != name:
                raise ValueError(f"sources {other} and {name} have the same {log}: every row would come twice")
        return self

    @model_validator(mode="after")
    def _comments_are_known(self) -> Self:
        """Refuse masks by comment for a source without comments: such a mask would never apply, and
        values would show.
        """
        by_comment = any(rule.comment is not None for rule in self.tables.masks)
        for name, source in self.sources.items():
            if by_comment and source.traits.changefeed:
                raise ValueError(
                    f"tables.masks: comment: the files of source {name} have no comments of columns; give columns"
                )
        return self

    @model_validator(mode="after")
    def _hours_can_come(self) -> Self:
        """Refuse hours that can never come: nobody would learn why a DAG waits."""
        part = self.completeness
        for name in part.tables:
            if not self.tables.is_target(name) and not any(self._is_unrouted(pair, name) for pair in splits(name)):
                raise ValueError(
                    f"completeness.tables: {name} is no table of silver by tables.include and tables.routes"
                )
        if part.verified and not self.verify.each_table_hours:
            raise ValueError("completeness.verified needs verify.each_table_hours: else no hour is ever verified")
        return self

    def _is_unrouted(self, pair: tuple[str, str], name: str) -> bool:
        return self.tables.keeps(*pair) and self.tables.logical(*pair).name == name

    def owner(self, source: str) -> str:
        """The source under whose name a source's tables are recorded: in a cluster with several
        Pumps the first Pump.
        """
        return self.pumps(source)[0]

    def pumps(self, source: str) -> list[str]:
        """All sources whose transactions are those of a source's tables, in the order of the pipeline file."""
        entry = self.sources.get(source)
        if entry is None or (cluster := entry.traits.cluster) is None:
            return [source]
        return [name for name, other in self.sources.items() if other.traits.cluster == cluster]

    @property
    def captures(self) -> dict[str, str]:
        """The suffix of each capture DAG's name -> its source. Each source has a DAG of its own: a DAG's next run
        begins when all tasks of the last one have ended, and the task of a source that is down is tried for days.
        """
        first, *others = self.sources
        return {"capture": first} | {f"capture_{name}": name for name in others}

    def capture_dag(self, source: str) -> str:
        """The id of the DAG that captures a source."""
        return f"{self.pipeline}__{next(work for work, name in self.captures.items() if name == source)}"

    def watched_while_at_rest(self, source: str) -> str | None:
        """The connection of the server that is asked for news while capture rests; None where capture never does. One
        of several sources never does: while quiet, it would hold back the cut of all.
        """
        return self.sources[source].traits.watched_conn_id if len(self.sources) == 1 else None

    def server(self, source: str) -> MysqlSource:
        """A source that is a server with a binlog to ask for. Raises ConfigError for another kind."""
        server = self.sources[source]
        if not isinstance(server, MysqlSource):
            raise ConfigError(
                f"source {source} has the flavour {server.flavour}, and is no server with a binlog",
                remedy="this works with sources of MySQL and MariaDB",
            )
        return server

    def answers_sql(self, source: str) -> bool:
        """Whether its tables can be read by SQL: not those of a changefeed of which no TiDB is named."""
        return self.sources[source].traits.sql_conn_id is not None

    def lacks_snapshots(self, source: str) -> bool:
        """Whether no snapshot reads a source's tables: those of a changefeed of which no TiDB is named. For an unknown
        source: of any of them.
        """
        return not any(map(self.answers_sql, [source] if source in self.sources else self.sources))

    @property
    def owners(self) -> list[str]:
        """Sources under whose names tables stand."""
        return list(dict.fromkeys(map(self.owner, self.sources)))

    @property
    def asks(self) -> bool:
        """Whether something may wait for a person's answer: then the pipeline has a DAG <name>__approve."""
        return self.ddl.asks or self.xa.orphans is Orphans.ASK

    @property
    def land_seconds(self) -> float:
        """How often capture lands what it has: as the file says, or as the mode of apply needs."""
        if self.capture.land_seconds is not None:
            return self.capture.land_seconds
        quick = self.apply.mode is ApplyMode.MICRO_BATCH
        return limits.MICRO_BATCH_LAND_SECONDS if quick else limits.LAND_SECONDS_DEFAULT
