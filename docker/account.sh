#!/bin/sh
# Run once by MariaDB's image: the account that docs/source.md asks for. The binlog is off, so its password's hash stays out of it.
set -eu
MYSQL_PWD="$MARIADB_ROOT_PASSWORD" mariadb -uroot <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER 'tidegate'@'%' IDENTIFIED BY '$TIDEGATE_PASSWORD';
GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'tidegate'@'%';
SQL
