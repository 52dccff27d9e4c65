"""Whether a source's other hosts can take over: `tidegate check` reports it before a failover does.

In:  facts of the host being read; facts of another host of the same source, asked before.
Out: faults and warnings, one line each. Pure.

The other host is asked before: a transaction it has and the first host lacks is then its own
(errant), and didn't come in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidegate.config import Flavour
from tidegate.mysql.demands.preflight import Level, SourceDemands, findings
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.position import MariadbGtidPosition, MysqlGtidSet

# What makes the same statement look otherwise in the log, or names read otherwise.
_SETTINGS: Final = (
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "lower_case_table_names",
    "log_bin_compress",
)

_REPLIES: Final = ("rpl_semi_sync_source_wait_for_replica_count", "rpl_semi_sync_master_wait_for_slave_count")


def about(main: SourceFacts, other: SourceFacts, wanted: SourceDemands) -> Iterator[tuple[Level | None, str]]:
    """Lines about another host, each with its level. None stands for mere information."""
    if (main.server_id, main.server_uuid) == (other.server_id, other.server_uuid):
        yield Level.CAUTION, "is the same server as the one that is read: named twice, it is no second host"
        return
    for finding in findings(other, wanted):
        what = "it would be refused after a failover: " if finding.level is Level.REFUSE else ""
        yield Level.CAUTION, f"{what}{finding.what}; {finding.remedy}"
    if main.flavour is other.flavour:
        yield from _transactions(main, other)
    if wanted.semi_sync:
        yield from _replied_alone(main)
    for name in _SETTINGS:
        here, at_other = main.variables.get(name), other.variables.get(name)
        if here is not None and at_other is not None and here != at_other:
            yield Level.CAUTION, f"{name} is {at_other}, and {here} on the host that is read; set it to the same"


def is_fenced(facts: SourceFacts) -> bool:
    """Whether nobody may write there, and nothing comes from elsewhere: as at a former primary."""
    return facts.is_read_only and not facts.may_receive


def takes_over(main: SourceFacts, other: SourceFacts) -> bool:
    """Whether the other one was promoted, and capture's host is a former primary that lives on: fenced off, while the
    other one is written to, follows nobody, and has more.
    """
    if main.flavour is not other.flavour or not is_fenced(main) or other.is_read_only or other.may_receive:
        return False
    return bool((_mysql_differ if main.flavour is Flavour.MYSQL else _mariadb_differ)(main, other)[1])


def _transactions(main: SourceFacts, other: SourceFacts) -> Iterator[tuple[Level | None, str]]:
    mysql = main.flavour is Flavour.MYSQL
    if not (_mysql_share if mysql else _mariadb_share)(main, other):
        what = "has no transaction in common with the host that is read: it looks like another cluster"
        yield Level.CAUTION, f"{what}; take it out of the connection's hosts"
        return
    lacks, own = (_mysql_differ if mysql else _mariadb_differ)(main, other)
    if own:
        what = f"has transactions that the host that is read lacks: GTIDs {own}"
        yield Level.CAUTION, f"{what}; after a failover they come into silver, or stop capture where they are purged"
        if not main.may_receive and not other.may_receive:  # neither is the other's replica: which one is written to?
            what = "may be the primary now, while capture stays at one that gets nothing of it"
            yield (
                Level.CAUTION,
                f"{what}; if so fence off the host that is read (read_only), end it, or make it a replica of this one",
            )
    if lacks and other.may_receive:
        yield None, f"is behind (GTIDs {lacks}) and replicates: after a failover it is waited for"
    elif lacks:
        yield (
            Level.CAUTION,
            f"lacks GTIDs {lacks} and doesn't replicate: capture couldn't go on there; let it replicate again",
        )
    else:
        yield None, "has what the host that is read has" + (", and replicates" if other.may_receive else "")


def _replied_alone(main: SourceFacts) -> Iterator[tuple[Level, str]]:
    """A commit that needs one reply may have capture's alone."""
    what = "may lack what clients were told is committed, since capture's reply alone is enough for a commit"
    if main.flavour is Flavour.MARIADB:
        yield Level.CAUTION, f"{what}; take semi_sync out of the pipeline file, so that this host's reply counts"
    elif main.number(*_REPLIES) < 2:
        remedy = "SET GLOBAL rpl_semi_sync_source_wait_for_replica_count = 2 on the host that is read"
        yield Level.CAUTION, f"{what}; {remedy}"


def _mysql_share(main: SourceFacts, other: SourceFacts) -> bool:
    ours, theirs = MysqlGtidSet.parse(main.gtid_executed), MysqlGtidSet.parse(other.gtid_executed)
    return not ours.intervals or not theirs.intervals or ours.minus(theirs).intervals != ours.intervals


def _mysql_differ(main: SourceFacts, other: SourceFacts) -> tuple[str, str]:
    ours, theirs = MysqlGtidSet.parse(main.gtid_executed), MysqlGtidSet.parse(other.gtid_executed)
    return str(ours.minus(theirs)), str(theirs.minus(ours))


def _state(facts: SourceFacts) -> dict[tuple[int, int], int]:
    """(domain, server) -> its last sequence, for all that ever wrote into this binlog."""
    sequences = {}
    for part in "".join(facts.variables.get("gtid_binlog_state", "").split()).split(","):
        if part:
            domain, server, sequence = (int(piece) for piece in part.split("-"))
            sequences[domain, server] = sequence
    return sequences


def _mariadb_share(main: SourceFacts, other: SourceFacts) -> bool:
    ours, theirs = _state(main), _state(other)
    return not ours or not theirs or bool(ours.keys() & theirs.keys())


def _mariadb_differ(main: SourceFacts, other: SourceFacts) -> tuple[str, str]:
    """A position is a point per domain: what one has written beyond the other's."""
    ours, theirs = MariadbGtidPosition.parse(main.gtid_executed), MariadbGtidPosition.parse(other.gtid_executed)
    lacks = [
        f"{domain}-{server}-{sequence}"
        for domain, (server, sequence) in sorted(ours.domains.items())
        if theirs.domains.get(domain, (0, 0))[1] < sequence
    ]
    known = _state(main)
    own = [
        f"{domain}-{server}-{sequence}"
        for (domain, server), sequence in sorted(_state(other).items())
        if server == other.server_id and known.get((domain, server), 0) < sequence
    ]
    return ", ".join(lacks), ", ".join(own)
