"""The service that runs a server, if its owner doesn't, and how long it keeps the binlog.

In:  a server's variables (names in lower case), and a cursor of the account.
Out: a Managed.

The server's own facts identify a service, never the name of its host: an alias or a proxy hides
this name, and a server of one's own may have any. An unknown service counts as a server of one's
own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pymysql

from tidegate.mysql.connecting.server_errors import CLIENT_ERRORS

_RDS_TABLE: Final = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = 'mysql' AND table_name = 'rds_configuration'"
)
_RDS_KEPT: Final = "SELECT value FROM mysql.rds_configuration WHERE name = 'binlog retention hours'"
_RDS_FOLDER: Final = "/rdsdb"  # basedir is /rdsdbbin/..., datadir /rdsdbdata/...


class Service(StrEnum):
    """The value is its name for a person."""

    OWN = "a server of one's own"
    RDS = "Amazon RDS"
    AURORA = "Amazon Aurora"
    CLOUD_SQL = "Google Cloud SQL"
    AZURE = "Azure Database for MySQL"
    TIDB = "TiDB"


@dataclass(frozen=True, slots=True)
class Managed:
    """binlog_hours: the time for which Amazon's services keep a binlog file, whatever the server's own settings say. 0:
    it goes as soon as they like. None: the account may not look, or the service is another one.
    """

    service: Service = Service.OWN
    binlog_hours: int | None = None

    def __str__(self) -> str:
        """To be put after the server's name."""
        return "" if self.service is Service.OWN else f", {self.service}"

    @property
    def is_amazon(self) -> bool:
        return self.service in (Service.RDS, Service.AURORA)


ONES_OWN: Final = Managed()


def service_of(variables: Mapping[str, str], *, has_rds_table: bool = False) -> Service:
    """has_rds_table: whether there is a table mysql.rds_configuration."""
    version = variables.get("version", "").lower()
    if "-tidb-" in version or "tidb_config" in variables:
        return Service.TIDB
    if "aurora_version" in variables:
        return Service.AURORA
    folders = (variables.get("basedir", ""), variables.get("datadir", ""))
    if has_rds_table or any(folder.startswith(_RDS_FOLDER) for folder in folders):
        return Service.RDS
    if version.endswith("-google") or "-google-" in version or _has_any(variables, "cloudsql_"):
        return Service.CLOUD_SQL
    if version.endswith("-azure") or "-azure-" in version or _has_any(variables, "azure_", "aad_auth_"):
        return Service.AZURE
    return Service.OWN


def _has_any(variables: Mapping[str, str], *beginnings: str) -> bool:
    return any(name.startswith(beginnings) for name in variables)


def read_managed(cursor: Any, variables: Mapping[str, str]) -> Managed:
    """Raises PyMySQL's errors. An account without a right to RDS' table is no error: its hours are not known then."""
    cursor.execute(_RDS_TABLE)
    service = service_of(variables, has_rds_table=cursor.fetchone() is not None)
    if service not in (Service.RDS, Service.AURORA):
        return Managed(service)
    try:
        cursor.execute(_RDS_KEPT)
        row = cursor.fetchone()
    except (pymysql.err.OperationalError, pymysql.err.ProgrammingError) as error:
        if not isinstance(error.args[0], int) or error.args[0] >= CLIENT_ERRORS:
            raise
        return Managed(service)
    hours = str(row[0]) if row and row[0] is not None else "0"
    return Managed(service, int(hours) if hours.isdecimal() else 0)
