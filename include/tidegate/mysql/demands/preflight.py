"""Whether capture may start, or continue, on a server: rules over its facts.

In:  SourceFacts, and the demands of a pipeline.
Out: findings, one line each: refusals, and settings unfit for some tables or commits.

It runs on each connection: a server is another one after a promotion, or after a restart with other
settings. A rule that needs one more fact adds it to SourceFacts. `RULES` has all questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import filterfalse
from typing import Final

from tidegate.config import DumpMode, Flavour, Pipeline, Tables
from tidegate.errors import SourceRefused
from tidegate.limits import BINLOG_KEPT_HOURS, HAND_OVER_SECONDS
from tidegate.mysql.demands.service_commands import KEEP_BINLOG, command_of
from tidegate.mysql.facts.managed import Service
from tidegate.mysql.facts.server_facts import EVENT_FILTERS, SourceFacts

# Whether commits wait for a replica's reply, in MySQL since 8.0.26, and before and in MariaDB.
_SEMI_SYNC: Final = ("rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled")
_SEMI_SYNC_TIMEOUT: Final = ("rpl_semi_sync_source_timeout", "rpl_semi_sync_master_timeout")
_LOGS_REPLICATED: Final = ("log_replica_updates", "log_slave_updates")
# Variables by which a replica skips events, by any of their names, and the values with which it skips none.
_SKIPS: Final = (
    (("replica_skip_errors", "slave_skip_errors"), ("", "OFF")),
    (("replicate_events_marked_for_skip",), ("", "REPLICATE")),
)


# Below MariaDB's default of a gigabyte, as a person may set it.
_FRAGMENTS_FROM_BYTES: Final = 1 << 29
# Modes that give a virtual column of a CHAR, or of a fraction of a second, another value.
_VALUE_MODES: Final = ("PAD_CHAR_TO_FULL_LENGTH", "TIME_ROUND_FRACTIONAL", "TIME_TRUNCATE_FRACTIONAL")
_ESCAPE: Final = re.compile(r"\\.")


class Level(StrEnum):
    REFUSE = "refuse"
    CAUTION = "caution"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault or a warning, with its remedy."""

    level: Level
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class SourceDemands:
    """The demands of a pipeline on one of its sources."""

    flavour: Flavour
    dump: DumpMode
    tables: Tables
    semi_sync: bool = False

    @classmethod
    def of(cls, pipeline: Pipeline, source_name: str) -> SourceDemands:
        source = pipeline.server(source_name)
        return cls(source.flavour, source.dump, pipeline.tables, source.semi_sync)


Rule = Callable[[SourceFacts, SourceDemands], Iterator[Finding]]


def preflight(facts: SourceFacts, wanted: SourceDemands) -> list[str]:
    """The cautions, one line each. Raises SourceRefused with the first refusal: capture can't be right there."""
    sorted_findings = findings(facts, wanted)
    for finding in sorted_findings:
        if finding.level is Level.REFUSE:
            raise SourceRefused(finding.what, where=facts.where, remedy=finding.remedy)
    return [f"{facts.where}: {finding.what}; {finding.remedy}" for finding in sorted_findings]


def findings(facts: SourceFacts, wanted: SourceDemands) -> list[Finding]:
    """All findings: refusals first, each kind in the order of RULES. A TiDB gets one refusal: it is no
    source of this kind.
    """
    rules = (_tidb,) if facts.managed.service is Service.TIDB else RULES
    unsorted = [finding for rule in rules for finding in rule(facts, wanted)]
    return sorted(unsorted, key=lambda finding: finding.level is not Level.REFUSE)


def _refuse(what: str, remedy: str) -> Finding:
    return Finding(Level.REFUSE, what, remedy)


def _caution(what: str, remedy: str) -> Finding:
    return Finding(Level.CAUTION, what, remedy)


def tidb_refusal(facts: SourceFacts) -> SourceRefused:
    """The refusal of a TiDB that is named as a MySQL."""
    return SourceRefused(
        f"the server is TiDB ({facts.version}), and no replica can read its log",
        where=facts.where,
        remedy="let a changefeed of TiCDC write files (flavour: ticdc, docs/ticdc.md), or a TiDB up to 8.3 its binlog"
        " to a Pump (flavour: tidb, docs/tidb.md)",
    )


def _tidb(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    error = tidb_refusal(facts)
    yield _refuse(error.what, str(error.remedy))


def _flavour(facts: SourceFacts, wanted: SourceDemands) -> Iterator[Finding]:
    if facts.flavour is not wanted.flavour:
        yield _refuse(
            f"the server is {facts.flavour}, the pipeline file says {wanted.flavour}", f"set flavour: {facts.flavour}"
        )


def _binlog(facts: SourceFacts, wanted: SourceDemands) -> Iterator[Finding]:
    unlogged = "what changes meanwhile is in no log: then `tidegate verify` names the tables, and --repair mends them"
    needed = [
        ("log_bin", "ON", f"start the server with --log-bin; {unlogged}", "OFF"),
        ("binlog_format", "ROW", "SET GLOBAL binlog_format = ROW, and end sessions older than that", "ROW"),
    ]
    if facts.flavour is Flavour.MYSQL and wanted.dump is DumpMode.GTID:
        needed.append(("gtid_mode", "ON", "turn it on, or set dump: position in the pipeline file", "OFF"))
    for variable, value, remedy, missing in needed:
        setting = facts.variables.get(variable, missing)
        if setting.upper() != value:
            at_service = command_of(facts.managed, variable, value, logs=facts.on("log_bin"))
            yield _refuse(f"{variable} is {setting}, not {value}", at_service or remedy)


def missing_privileges(facts: SourceFacts) -> list[str]:
    """The privileges that capture lacks and needs, as in a GRANT; SELECT last."""
    mariadb = facts.flavour is Flavour.MARIADB
    monitor = "BINLOG MONITOR" if mariadb and facts.version_number >= (10, 5) else "REPLICATION CLIENT"
    missing = list(filterfalse(facts.holds, ("REPLICATION SLAVE", monitor)))
    if not any(re.search(r"\bSELECT\b|\bALL PRIVILEGES\b", grant, re.IGNORECASE) for grant in facts.grants):
        missing.append("SELECT")
    return missing


def _grants(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    for privilege in missing_privileges(facts):
        where = "the databases to keep" if privilege == "SELECT" else "*.*"
        yield _refuse(f"privilege {privilege} is missing", f"GRANT {privilege} ON {where} TO {facts.account}")


def _replicated(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    """A replica logs its primary's changes only with log_slave_updates on. In MariaDB it is off by default."""
    name = next((name for name in _LOGS_REPLICATED if name in facts.variables), "")
    if name and not facts.on(name) and facts.replicates:
        yield _refuse(
            f"{name} is OFF on a replica: its binlog lacks the changes that come from its primary",
            f"start it with --{name.replace('_', '-')}, or capture from the primary",
        )
    elif name and not facts.on(name) and facts.may_replicate:
        yield _refuse(
            f"{name} is OFF on a server that has replicated (gtid_slave_pos is set), and this account may not see"
            " whether it goes on",
            f"GRANT REPLICA MONITOR ON *.* TO {facts.account}, which shows whether it was promoted; or start it with"
            f" --{name.replace('_', '-')}",
        )


def _filters(facts: SourceFacts, wanted: SourceDemands) -> Iterator[Finding]:
    """binlog_do_db and binlog_ignore_db test the database of a row's table, but for DDL the session's database."""
    do, ignored = facts.binlog_do_dbs, facts.binlog_ignore_dbs
    kept = [name for name in facts.databases if wanted.tables.keeps_database(name)]
    unlogged = [name for name in kept if (do and name not in do) or name in ignored]
    setting = "binlog_do_db" if do else "binlog_ignore_db"
    if unlogged:
        yield _refuse(
            f"{setting} leaves {', '.join(unlogged)} out of the binlog, which the pipeline keeps",
            f"restart the server without {setting}, or exclude these databases in the pipeline file",
        )
    elif do or ignored:
        yield _caution(
            f"{setting} is set: DDL of kept tables isn't logged when the session's default database is left out",
            f"restart the server without {setting}, or run DDL with the table's own database as default",
        )


def _replication_filters(facts: SourceFacts, wanted: SourceDemands) -> Iterator[Finding]:
    """A replica with filters doesn't log what it leaves out. Its GTIDs are the primary's, so nothing shows the gap."""
    for replication in facts.replications:
        of_tables = [(setting, items) for setting, items in replication.filters if setting not in EVENT_FILTERS]
        lacking = [setting for setting, items in of_tables if _leaves_out(setting, items, facts, wanted)]
        if lacking:
            yield _refuse(
                f"it replicates from {replication.primary} without all that the pipeline keeps:"
                f" {', '.join(name.replace('_', '-') for name in lacking)}",
                "capture from the primary, or take these filters off the replica and build it anew",
            )
        elif of_tables:
            yield _caution(
                f"it replicates from {replication.primary} with filters"
                f" ({', '.join(name.replace('_', '-') for name, _ in of_tables)}), and they drop none of"
                " the pipeline's tables here",
                "capture from the primary where a table may be missing here",
            )


def _skips(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    """No log of a replica has the events that it skips. On MySQL its GTIDs are the primary's all the same."""
    filters = [pair for replication in facts.replications for pair in replication.filters]
    skips = [f"{setting}: {', '.join(items)}" for setting, items in filters if setting in EVENT_FILTERS]
    if facts.replications:
        skips += [
            f"{names[-1]}: {value}" for names, none in _SKIPS if (value := facts.value(*names)).upper() not in none
        ]
    if skips:
        yield _caution(
            f"this replica skips events of its primary ({'; '.join(skips)}): their rows are neither here nor in silver",
            "capture from the primary; or take this setting off the replica, and build it anew",
        )


def _leaves_out(setting: str, items: tuple[str, ...], facts: SourceFacts, wanted: SourceDemands) -> bool:
    """Whether a filter may leave out, or rename, something the pipeline keeps. items: databases,
    database.table, patterns of these for LIKE, or (from,to).
    """
    kept = [name for name in facts.databases if wanted.tables.keeps_database(name)]
    if setting == "replicate_do_db":
        return any(name not in items for name in kept)
    if setting == "replicate_ignore_db":
        return any(wanted.tables.keeps_database(name) for name in items)
    if setting == "replicate_ignore_table":
        named = [item.partition(".") for item in items]  # on RDS tables of the server's own database
        return any(database in kept and wanted.tables.keeps(database, table) for database, _, table in named)
    if setting == "replicate_wild_ignore_table":
        return any(_is_like(item.partition(".")[0], name) for item in items for name in kept)
    if setting == "replicate_wild_do_table":
        whole = [item.partition(".")[0] for item in items if item.partition(".")[2] == "%"]
        return any(not any(_is_like(pattern, name) for pattern in whole) for name in kept)
    return bool(kept)  # single tables alone, or other names


def _is_like(pattern: str, name: str) -> bool:
    """As LIKE: % is any text, _ is any character, and a backslash makes the next character a plain one."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    texts = [{"%": ".*", "_": "."}.get(part) or re.escape(part.removeprefix("\\") or part) for part in parts]
    return re.fullmatch("".join(texts), name, re.DOTALL) is not None


def _log_engine(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    """MariaDB 12.3 can keep its log in InnoDB: without positions, FORMAT_DESCRIPTION events or BINLOG_GTID_POS."""
    engine = facts.value("binlog_storage_engine")
    if engine:
        yield _refuse(
            f"binlog_storage_engine is {engine}: that log has no positions, and can't be captured",
            "capture from a replica that logs into files (log_slave_updates, no binlog_storage_engine). Or start this"
            " server without that setting: it then begins an empty log",
        )


def _fragments(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    """MariaDB 12.3 splits events of large rows into PARTIAL_ROW_DATA events. tidegate doesn't read these."""
    name = "binlog_row_event_fragment_threshold"
    if 0 < facts.number(name) < _FRAGMENTS_FROM_BYTES:
        yield _caution(
            f"{name} is {facts.value(name)}: larger rows are logged in fragments, and these hold their transaction's"
            " tables",
            f"SET GLOBAL {name} = DEFAULT, and end sessions older than that",
        )


def _row_image(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    image = facts.variables.get("binlog_row_image", "FULL").upper()
    if image not in ("FULL", "FULL_NODUP"):
        yield _caution(
            f"binlog_row_image is {image}: an update that doesn't log all it leaves in a row stops its table",
            command_of(facts.managed, "binlog_row_image", "FULL")
            or "SET GLOBAL binlog_row_image = FULL, and end sessions older than that",
        )


def keeps_no_log(facts: SourceFacts) -> bool:
    """Whether a cloud's service may remove binlog files at any time: its setting is 0. A server of one's
    own keeps all files with a 0.
    """
    if facts.managed.is_amazon:
        return facts.managed.binlog_hours == 0
    return facts.managed.service is Service.AZURE and facts.number("binlog_expire_logs_seconds") == 0


def _kept(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    """A binlog file removed before capture has read it is lost."""
    service, setting = facts.managed.service, "binlog_expire_logs_seconds"
    command = command_of(facts.managed, setting, str(BINLOG_KEPT_HOURS * 3600))
    remedy = f"`{KEEP_BINLOG}`" if facts.managed.is_amazon else command
    if keeps_no_log(facts):
        yield _caution(f"{service} may remove binlog files at once: while capture is down, changes get lost", remedy)
    elif facts.managed.is_amazon and facts.managed.binlog_hours is None:
        yield _caution(
            f"this account can't see how long {service} keeps binlog files (mysql.rds_configuration)",
            f"GRANT SELECT ON mysql.rds_configuration TO {facts.account}, or look there: `CALL"
            f" mysql.rds_show_configuration`; and {remedy}",
        )


def _modes(facts: SourceFacts, _: SourceDemands) -> Iterator[Finding]:
    """A snapshot and verify read without any mode."""
    if modes := [mode for mode in _VALUE_MODES if mode in facts.variables.get("sql_mode", "").split(",")]:
        yield _caution(
            f"sql_mode has {', '.join(modes)}: virtual columns of CHAR columns, or of times, are logged with other"
            " values than a snapshot and verify see",
            "take it out of sql_mode, or leave such columns out (tables.columns)",
        )


def _names(facts: SourceFacts, wanted: SourceDemands) -> Iterator[Finding]:
    """If the server keeps names in lower case, so do TABLE_MAP events: patterns must be in lower case, too."""
    setting = facts.variables.get("lower_case_table_names", "0")
    if setting == "2":
        yield _refuse(
            "lower_case_table_names is 2: names come in the log in lower case or as created, nobody can say which",
            "use a server with 0 or 1, which is one with another data directory",
        )
    if setting == "1":
        for pattern in wanted.tables.patterns:
            if any(character.isupper() for character in _ESCAPE.sub("", pattern)):
                yield _refuse(
                    f"lower_case_table_names is 1 and pattern {pattern!r} has capitals: no name there has any",
                    "write it in lower case in the pipeline file",
                )


def _semi_sync(facts: SourceFacts, wanted: SourceDemands) -> Iterator[Finding]:
    if not wanted.semi_sync:
        return
    if not any(name in facts.variables for name in _SEMI_SYNC):
        yield _refuse(
            "semi_sync is set, but the server doesn't have it",
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so' there, or take semi_sync out",
        )
    elif not any(facts.variables.get(name) == "ON" for name in _SEMI_SYNC):
        yield _caution(
            "semi_sync is set, but the server waits for nobody",
            "SET GLOBAL rpl_semi_sync_source_enabled = 1 (rpl_semi_sync_master_enabled in MariaDB)",
        )
    elif facts.number(*_SEMI_SYNC_TIMEOUT) > HAND_OVER_SECONDS * 1000:
        needed = max(facts.number("rpl_semi_sync_source_wait_for_replica_count"), 1)
        if facts.semi_sync_replicas < needed:
            yield _caution(
                f"no other semi-sync replica is connected: while capture restarts, or is down, commits wait up to"
                f" {facts.number(*_SEMI_SYNC_TIMEOUT) / 1000:.0f} s",
                "let another semi-sync replica reply as well, or lower rpl_semi_sync_source_timeout"
                " (rpl_semi_sync_master_timeout in MariaDB)",
            )


RULES: Final[tuple[Rule, ...]] = (
    _flavour,
    _binlog,
    _grants,
    _replicated,
    _filters,
    _replication_filters,
    _skips,
    _log_engine,
    _fragments,
    _names,
    _row_image,
    _kept,
    _modes,
    _semi_sync,
)
