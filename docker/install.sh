#!/bin/sh
# Installs tidegate into a folder of its own: what the image holds, and nothing that only tests need.
#
#   docker/install.sh CHECKOUT PREFIX
#
# CHECKOUT is this repository. PREFIX becomes TIDEGATE_HOME: venv/ with Airflow, Spark, Celery and tidegate's wheel, the
# jars of Delta and S3 in .tidegate/jars, dags/ with the file that makes the DAGs. `make topology` runs what this makes.
set -eu
checkout=$(cd "$1" && pwd)
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
pip="$prefix/venv/bin/pip --disable-pip-version-check"

python3 -m venv "$prefix/venv"
# The versions that the tests ran with, without their hashes: pip takes hashes for all packages or for none, and ours has none.
sed -nE 's/^([A-Za-z0-9._-]+==[^\\]*[^\\ ]) *\\?$/\1/p' "$checkout/requirements.txt" >"$prefix/constraints.txt"
$pip install --quiet -c "$prefix/constraints.txt" hatchling
(cd "$checkout" && "$prefix/venv/bin/python" -m hatchling build --target wheel --directory "$prefix/wheel")
$pip install --quiet --no-cache-dir -c "$prefix/constraints.txt" \
    "$prefix"/wheel/tidegate-*.whl -r "$checkout/docker/requirements.txt"
$pip check

TIDEGATE_HOME=$prefix "$prefix/venv/bin/python" -m tidegate.local.jars --s3
# Compiled once here, not at the first start of each container.
NUMBA_CACHE_DIR=$prefix/.tidegate/numba "$prefix/venv/bin/python" -m tidegate.binlog.warm

mkdir -p "$prefix/dags" "$prefix/airflow/config"
echo 'import tidegate_airflow.dag_files  # airflow dag' >"$prefix/dags/tidegate.py"
cp "$checkout/docker/airflow_local_settings.py" "$prefix/airflow/config/"
