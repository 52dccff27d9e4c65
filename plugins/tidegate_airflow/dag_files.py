"""All DAGs of an installed tidegate, for a dags folder of one's own.

In:  a file of that folder with one line: `import tidegate_airflow.dag_files  # airflow dag`
Out: Airflow counts the DAGs as that file's: a DAG made by `with` belongs to the file that Airflow
     reads.

A checkout's dags/ folder does the same, with a file for each kind of work.
"""

from __future__ import annotations

import runpy

from tidegate.home import folder_of

for _file in sorted(folder_of("dags").glob("*.py")):
    if _file.name != "pipeline_files.py":  # it has no DAG, and its import error would stop all others
        runpy.run_path(str(_file), run_name=f"tidegate_dags.{_file.stem}")
