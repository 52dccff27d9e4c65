#!/bin/sh
# Run once by MySQL's image: the account that docs/source.md asks for, and its rights for snapshots. The binlog is off,
# so its password's hash stays out of it.
set -eu
MYSQL_PWD="$MYSQL_ROOT_PASSWORD" mysql -uroot <<SQL
SET SESSION sql_log_bin = 0;
CREATE USER 'tidegate'@'%' IDENTIFIED BY '$TIDEGATE_PASSWORD';
GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'tidegate'@'%';
GRANT LOCK TABLES, PROCESS, XA_RECOVER_ADMIN ON *.* TO 'tidegate'@'%';
GRANT CREATE, SELECT, INSERT, UPDATE ON tidegate.* TO 'tidegate'@'%';
SQL
