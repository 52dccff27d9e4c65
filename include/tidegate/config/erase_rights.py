"""The section `erase` of a pipeline file: who may order that a person's rows leave the lake.

In:  the section, as pydantic gets it.
Out: an Erase, frozen.
"""

from __future__ import annotations

from pydantic import Field

from tidegate.config.section import Section


class Erase(Section):
    """Orders by the DAG `<pipeline>__erase`. The command line asks for none of these names."""

    by: tuple[str, ...] = Field(
        (),
        description="Names of the Airflow users whose runs of the erase DAG erase rows. All other runs, and all without"
        " a name here, are dry runs or fail",
    )
