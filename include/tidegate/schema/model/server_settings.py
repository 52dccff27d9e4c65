"""Settings of a source that the meaning of its log depends on, as they were when its baseline was taken.

In:  SHOW GLOBAL VARIABLES.
Out: ServerSettings, kept as JSON with the defaults of the server in control/schema_history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Self

from tidegate.schema.model.server import ServerVersion

NAMES: Final = ("lower_case_table_names", "innodb_native_foreign_keys", "default_storage_engine")
# MySQL carries out foreign keys' actions in the SQL layer from here on, and logs what they do.
_LOGS_CASCADES_SINCE: Final = 90600


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """folds_names: lower_case_table_names isn't 0: names are in lower case in TABLE_MAPs, as typed in statements.

    native_keys: InnoDB carries out foreign keys' actions even where the SQL layer could. engine: of CREATE TABLE
    without ENGINE, in lower case. kept, left_out: the patterns of the baseline's tables. gap_ts: commit_ts of the
    newest gap accepted by a person and with possible DDL: facts of tables before it prove nothing after it.
    """

    folds_names: bool = False
    native_keys: bool = False
    engine: str = "innodb"
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    gap_ts: int = 0

    @classmethod
    def of(cls, variables: Mapping[str, str], kept: tuple[str, ...] = (), left_out: tuple[str, ...] = ()) -> Self:
        return cls(
            folds_names=variables.get("lower_case_table_names", "0") != "0",
            native_keys=variables.get("innodb_native_foreign_keys", "OFF").upper() in ("ON", "1"),
            engine=(variables.get("default_storage_engine") or "InnoDB").lower(),
            kept=kept,
            left_out=left_out,
        )

    def logs_cascades(self, server: ServerVersion) -> bool:
        """Whether what ON DELETE and ON UPDATE change comes as row events."""
        return not server.mariadb and server.number >= _LOGS_CASCADES_SINCE and not self.native_keys

    def to_text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str | None) -> Self | None:
        if not text:
            return None
        cells = json.loads(text)
        return cls(**{**cells, "kept": tuple(cells["kept"]), "left_out": tuple(cells["left_out"])})
