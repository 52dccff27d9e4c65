"""Variables that change what a session's statements mean, or how the log has them.

In:  a seeded random.Random, the flavour.
Out: session_variable(), global_variable(): a SET statement. Some of them make a table wait, with its reason.
"""

from __future__ import annotations

import random
from typing import Final

_MODES: Final = (
    *("", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE", "ALLOW_INVALID_DATES"),
    *("NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ANSI", "PIPES_AS_CONCAT", "NO_AUTO_VALUE_ON_ZERO", "REAL_AS_FLOAT"),
    *("PAD_CHAR_TO_FULL_LENGTH", "NO_UNSIGNED_SUBTRACTION", "TRADITIONAL", "IGNORE_SPACE", "HIGH_NOT_PRECEDENCE"),
)
_SESSION: Final = {
    "time_zone": ("'+00:00'", "'-11:30'", "'+13:00'", "SYSTEM"),
    "sql_mode": tuple(f"'{mode}'" for mode in _MODES),
    "character_set_client": ("latin1", "utf8mb4", "utf8mb4", "cp1250"),
    "character_set_connection": ("latin1", "utf8mb4"),
    "collation_connection": ("utf8mb4_bin", "utf8mb4_general_ci", "latin1_general_cs"),
    "character_set_database": ("latin1", "utf8mb4"),
    "collation_server": ("utf8mb4_bin", "latin1_swedish_ci"),
    "foreign_key_checks": ("0", "1", "1"),
    "unique_checks": ("0", "1"),
    "auto_increment_increment": ("1", "3", "10"),
    "auto_increment_offset": ("1", "2"),
    "explicit_defaults_for_timestamp": ("0", "1"),
    "binlog_row_image": ("FULL", "FULL", "FULL", "MINIMAL", "NOBLOB"),
    "default_storage_engine": ("InnoDB", "InnoDB", "MyISAM"),
    "lc_time_names": ("'de_DE'", "'en_US'"),
    "div_precision_increment": ("0", "8"),
    "timestamp": ("1", "2147483647", "1700000000.5", "DEFAULT"),
    "insert_id": ("7", "1000"),
    "sql_auto_is_null": ("0", "1"),
    "completion_type": ("0", "1"),
    "transaction_isolation": ("'READ-COMMITTED'", "'SERIALIZABLE'", "'REPEATABLE-READ'"),
}
_MARIADB: Final = {
    "sql_mode": ("'NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'", "'ORACLE'", "'EMPTY_STRING_IS_NULL'", "'MSSQL'"),
    "check_constraint_checks": ("0", "1"),
    "system_versioning_alter_history": ("KEEP", "ERROR"),
    "alter_algorithm": ("COPY", "DEFAULT", "NOCOPY"),
    "old_mode": ("'UTF8_IS_UTF8MB3'", "''", "'NO_DUP_KEY_WARNINGS_WITH_IGNORE'"),
    "binlog_annotate_row_events": ("0", "1"),
    "create_tmp_table_binlog_formats": ("'MIXED'",),
}
_MYSQL: Final = {
    "sql_mode": ("'TIME_TRUNCATE_FRACTIONAL'", "'NO_DIR_IN_CREATE'"),
    "binlog_transaction_compression": ("ON", "OFF"),
    "binlog_rows_query_log_events": ("ON", "OFF"),
    "binlog_row_value_options": ("'PARTIAL_JSON'", "''"),
    "sql_generate_invisible_primary_key": ("ON", "OFF", "OFF"),
    "default_collation_for_utf8mb4": ("utf8mb4_general_ci", "utf8mb4_0900_ai_ci"),
    "show_create_table_verbosity": ("ON", "OFF"),
}
_GLOBAL: Final = {
    "binlog_row_metadata": ("MINIMAL", "FULL", "FULL"),
    "binlog_checksum": ("NONE", "CRC32"),
    "max_binlog_size": ("4096", "1048576"),
}
_GLOBAL_MARIADB: Final = {
    "log_bin_compress": ("ON", "OFF"),
    "log_bin_compress_min_len": ("10", "256"),
    "binlog_row_metadata": ("NO_LOG", "MINIMAL", "FULL", "FULL"),
}


def session_variable(rng: random.Random, *, mariadb: bool) -> str:
    """One of a session's, with a value that it may have."""
    own = _MARIADB if mariadb else _MYSQL
    name = rng.choice([*_SESSION, *own, "sql_mode", "sql_mode", "time_zone"])
    value = rng.choice([*_SESSION.get(name, ()), *own.get(name, ())])
    if name == "sql_mode" and rng.random() < 0.5:
        return f"SET SESSION sql_mode = CONCAT_WS(',', @@sql_mode, {value})"
    if name == "character_set_client" and rng.random() < 0.5:
        return f"SET NAMES {value}"
    return f"SET SESSION {name} = {value}"


def global_variable(rng: random.Random, *, mariadb: bool) -> str:
    """One of the server's, for all sessions that begin later or for the log."""
    known = _GLOBAL | (_GLOBAL_MARIADB if mariadb else {})
    name = rng.choice(list(known))
    return f"SET GLOBAL {name} = {rng.choice(known[name])}"
