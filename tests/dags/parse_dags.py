"""Parse dags/ as Airflow's DAG processor does and write what came of it as JSON. Run by test_dag_files.py.

In:  argv: the dags folder, the file to write; the environment: AIRFLOW_HOME, TIDEGATE_PIPELINES.
Out: per DAG what Airflow serialises, import errors per file, seconds per file, heavy modules imported.

It is a process of its own because what a parse imports can only be seen in a fresh interpreter.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

HEAVY = ("pyspark", "pyarrow", "numba", "deltalake", "pandas", "numpy", "pymysql", "duckdb", "delta", "polars")


def main(folder: Path, out: Path) -> None:
    warnings.simplefilter("ignore")
    import airflow.sdk  # noqa: F401
    from airflow.dag_processing.dagbag import BundleDagBag

    # A parse runs in a fork of the DAG processor, which has these already.
    from airflow.providers.apache.spark.operators import spark_submit  # noqa: F401
    from airflow.serialization.serialized_objects import DagSerialization

    found: dict[str, dict] = {"dags": {}, "errors": {}, "seconds": {}}
    for path in sorted(folder.glob("*.py")):
        started = time.process_time()
        bag = BundleDagBag(dag_folder=str(path), bundle_path=folder, bundle_name="test", load_op_links=False)
        found["seconds"][path.name] = time.process_time() - started
        found["errors"] |= bag.import_errors
        for dag_id, dag in bag.dags.items():
            again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
            found["dags"][dag_id] = {
                "file": path.name,
                "serialised": DagSerialization.to_dict(dag),
                "summary": again.timetable.summary,
                "doc_md": dag.doc_md,
                "params": {name: dag.params.get_param(name).dump() for name in dag.params},
            }
    found["heavy"] = sorted(name for name in HEAVY if name in sys.modules)
    out.write_text(json.dumps(found, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
