"""Settings of a cloud's server: the commands of its owner, as the service refuses SET GLOBAL.

In:  the service, and the settings to be changed.
Out: commands of the service's own tool, for a shell; none for a server of one's own. Words in
     capitals (GROUP, INSTANCE) stand for names known to the owner alone.

From the manuals of the services: docs/how-to/rds.md, aurora.md, cloud-sql.md and azure.md have the
sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.limits import BINLOG_KEPT_HOURS
from tidegate.mysql.facts.managed import Managed, Service

Setting = tuple[str, str]

KEEP_BINLOG: Final = f"CALL mysql.rds_set_configuration('binlog retention hours', {BINLOG_KEPT_HOURS})"
_FORMAT: Final = "binlog_format"  # OFF is Aurora's default, and stands for log_bin
_PAGES: Final = {
    Service.RDS: "docs/how-to/rds.md",
    Service.AURORA: "docs/how-to/aurora.md",
    Service.CLOUD_SQL: "docs/how-to/cloud-sql.md",
    Service.AZURE: "docs/how-to/azure.md",
}
_STEPS: Final = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")


def page_of(service: Service) -> str:
    """The page of the whole preparation; "" for a server of one's own."""
    return _PAGES.get(service, "")


def commands(managed: Managed, settings: Sequence[Setting], *, logs: bool) -> list[str]:
    """logs: whether the server writes a binlog at all."""
    match managed.service:
        case Service.RDS:
            return [
                *_rds_log(logs=logs),
                *_amazon_group("db-parameter-group", settings),
                *_reboot(settings, "INSTANCE"),
            ]
        case Service.AURORA:
            wanted = settings if logs else [(_FORMAT, "ROW"), *(pair for pair in settings if pair[0] != _FORMAT)]
            return [*_amazon_group("db-cluster-parameter-group", wanted), *_reboot(wanted, "WRITER")]
        case Service.CLOUD_SQL:
            return [*_google_log(logs=logs), *_google_flags(settings)]
        case Service.AZURE:
            return list(_azure(settings))
        case _:
            return []


def command_of(managed: Managed, name: str, value: str, *, logs: bool = True) -> str:
    """A remedy for one setting, in a line; "" for a server of one's own."""
    lines = commands(managed, [(name, value)] if name != "log_bin" else [], logs=logs)
    return ", then ".join(f"`{line.partition('  #')[0]}`" for line in lines)


def _rds_log(*, logs: bool) -> list[str]:
    what = (
        "aws rds modify-db-instance --db-instance-identifier INSTANCE --backup-retention-period 1 --apply-immediately"
    )
    return [] if logs else [f"{what}  # RDS writes a binlog while it makes backups"]


def _amazon_group(kind: str, settings: Sequence[Setting]) -> list[str]:
    if not settings:
        return []
    named = [(name.replace("gtid_mode", "gtid-mode"), value) for name, value in settings]
    parts = " ".join(f'"ParameterName={n},ParameterValue={v},ApplyMethod=pending-reboot"' for n, v in named)
    return [f"aws rds modify-{kind} --{kind}-name GROUP --parameters {parts}"]


def _reboot(settings: Sequence[Setting], which: str) -> list[str]:
    return [f"aws rds reboot-db-instance --db-instance-identifier {which}"] if settings else []


def _google_log(*, logs: bool) -> list[str]:
    what = "gcloud sql instances patch INSTANCE --backup-start-time=02:00 --enable-bin-log"
    return [] if logs else [f"{what} --retained-transaction-log-days=7"]


def _google_flags(settings: Sequence[Setting]) -> list[str]:
    if not settings:
        return []
    flags = ",".join(f"{name}={value}" for name, value in settings)
    return [f"gcloud sql instances patch INSTANCE --database-flags={flags}  # it replaces all flags: add yours"]


def _azure(settings: Sequence[Setting]) -> list[str]:
    what = "az mysql flexible-server parameter set --resource-group GROUP --server-name SERVER"
    lines = []
    for name, value in settings:
        steps = _STEPS if name == "gtid_mode" and value == "ON" else (value,)
        lines += [f"{what} --name {name} --value {step}" for step in steps]
    return lines
