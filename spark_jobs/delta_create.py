"""Silver tables made by Delta's own transaction instead of by SQL: less CPU of the JVM for the same table.

In:  a table's URI as Spark wants it, and its shape.
Out: version 0 of the table, the same that silver_sql.create() makes; nothing when somebody made it already.

CREATE TABLE goes through Spark's parser, analyzer and catalogs before it comes to this very commit.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from spark_jobs.delta_jvm import DeltaClasses
from tidegate.delta.types import delta_json
from tidegate.merge.silver_sql import SilverShape, properties

_OPERATION: Final = "CREATE TABLE"
# Delta takes these out of the properties and puts them into the protocol.
_CLUSTERED: Final = {"delta.feature.clustering": "supported", "delta.feature.domainMetadata": "supported"}


def create_table(classes: DeltaClasses, session: Any, uri: str, shape: SilverShape) -> None:
    """Make the table when it isn't there. session: the JVM's. Raises what Delta raises."""
    with classes.active(session):
        log = classes.log.forTable(session, uri)
        found = log.update(False, classes.none, classes.none)
        if found.version() >= 0:
            return
        begun = log.startTransaction(classes.none, classes.some(found))
        begun.updateMetadataForNewTable(classes.seq([metadata_line(shape)]).head())
        try:
            begun.commit(classes.seq(clustering_lines(shape)), classes.operation(_OPERATION, classes.none))
        except Py4JJavaError:  # somebody was quicker, or it failed
            if log.update(False, classes.none, classes.none).version() < 0:
                raise


def metadata_line(shape: SilverShape) -> str:
    """The metaData action as in the log's JSON (PROTOCOL.md, "Change Metadata")."""
    fields = [
        {
            "name": column.name,
            "type": delta_json(column.type),
            "nullable": True,
            "metadata": {"comment": column.comment} if column.comment else {},
        }
        for column in shape.all_columns
    ]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": properties() | (_CLUSTERED if shape.cluster_by else {}),
        "createdTime": int(time.time() * 1000),
    }
    return json.dumps({"metaData": metadata})


def clustering_lines(shape: SilverShape) -> list[str]:
    """The domainMetadata action that names the clustering columns (PROTOCOL.md, "Clustered Table"); none without."""
    if not shape.cluster_by:
        return []
    columns = [[name] for name in shape.cluster_by]
    described = {"clusteringColumns": columns, "domainName": "delta.clustering"}
    configuration = json.dumps(described, separators=(",", ":"), ensure_ascii=False)
    domain = {"domain": "delta.clustering", "configuration": configuration, "removed": False}
    return [json.dumps({"domainMetadata": domain})]
