"""What a statement says of passwords isn't kept in tables that people read."""

from __future__ import annotations

import pytest

from tidegate.schema.ddl.secrets import masked


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE f (a INT) ENGINE=FEDERATED CONNECTION='mysql://u:s3cret@other:3306/db/t'",
        'ALTER TABLE f CONNECTION "mysql://u:s3cret@other/db/t"',
        "CREATE USER a@b IDENTIFIED BY 's3cret'",
        "CREATE USER a IDENTIFIED WITH caching_sha2_password AS 's3cret\\'x' PASSWORD EXPIRE NEVER",
        "CREATE USER a IDENTIFIED BY PASSWORD '*s3cret'",
        "CREATE USER a IDENTIFIED VIA ed25519 USING PASSWORD('s3cret') OR mysql_native_password USING 's3cret'",
        "ALTER USER a IDENTIFIED BY 'n3w s3cret' REPLACE 's3cret'",
        "SET PASSWORD FOR a = 's3cret'",
        "SET PASSWORD = PASSWORD('s3cret')",
        "GRANT ALL ON *.* TO a IDENTIFIED BY 'it''s s3cret'",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 's3cret')",
        "CHANGE MASTER TO MASTER_PASSWORD='s3cret', MASTER_HOST='h'",
    ],
)
def test_secrets_are_masked(sql: str) -> None:
    found = masked(sql)
    assert "s3cret" not in found
    assert found.startswith(sql[:12])


def test_the_rest_stays_as_it_was() -> None:
    sql = "ALTER TABLE password_resets ADD connection VARCHAR(9) DEFAULT 'x' COMMENT 'secret'"
    assert masked(sql) == sql
