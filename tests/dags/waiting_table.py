"""A lake in which a table waits for a person's approval of a statement.

In:  a folder.
Out: the log of shop.a, held at DDL.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.event_log import Log

DDL = "ALTER TABLE shop.a DROP COLUMN v, ADD note TEXT"


def waits_for_approval(folder: Path) -> Log:
    log = Log(folder)
    log.file.write_text(log.file.read_text().replace("statement_effects", "drop_column: ask, statement_effects"))
    log.send("one", "ALTER TABLE shop.a ADD COLUMN v INT", ("shop.a",))
    log.level()
    log.apply()
    log.send("one", DDL, ("shop.a",))
    log.level()
    log.apply()
    return log
