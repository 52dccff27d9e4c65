"""The pipeline file: one YAML file per pipeline, checked by pydantic, errors with line and key. A module per section.

In:  include/pipelines/<name>.yaml
Out: a Pipeline, frozen; every key has a default where one makes sense, and a description, shown by
     the Airflow trigger form and the papers, too.

Secrets never stand here: a source names an Airflow connection, and so does a lake that needs keys.
Other rooms import from here, not from the modules below.
"""

from tidegate.config.alerts import BOUNDED, Alert, Alerts, Notifier
from tidegate.config.apply import Apply, ApplyMode, Writer
from tidegate.config.capture import Capture
from tidegate.config.completeness import Completeness
from tidegate.config.connection_names import conn_ids
from tidegate.config.ddl import Cascades, Computed, Ddl, Effects, Policy, SessionValues
from tidegate.config.erase_rights import Erase
from tidegate.config.file import load, parse
from tidegate.config.lake import Lake
from tidegate.config.maintain import Maintain
from tidegate.config.pipeline import Pipeline
from tidegate.config.snapshot import Snapshot, SnapshotMarks, SnapshotMode
from tidegate.config.source_keys.any_source import Flavour
from tidegate.config.source_keys.sources import AnySource, DumpMode, MysqlSource, Start, TidbSource
from tidegate.config.source_keys.ticdc import BinaryEncoding, Csv, Protocol, TicdcSource
from tidegate.config.table_keys.cluster_rules import ClusterRule
from tidegate.config.table_keys.column_names import column_pattern
from tidegate.config.table_keys.column_rules import ColumnRule
from tidegate.config.table_keys.comment_rules import CommentRule
from tidegate.config.table_keys.computed_rules import ComputedRule
from tidegate.config.table_keys.kept_columns import ALL, KeptColumns
from tidegate.config.table_keys.masks import MaskKind, MaskRule
from tidegate.config.table_keys.named_tables import named_tables, near_table
from tidegate.config.table_keys.rename_rules import RenameRule
from tidegate.config.table_keys.row_rules import RowRule
from tidegate.config.table_keys.table_patterns import OWN_DATABASES, TableNames, matches, matching_places
from tidegate.config.table_keys.tables import Route, Tables
from tidegate.config.verify import Verify
from tidegate.config.xa import Orphans, Xa

__all__ = [
    "ALL",
    "BOUNDED",
    "OWN_DATABASES",
    "Alert",
    "Alerts",
    "AnySource",
    "Apply",
    "ApplyMode",
    "BinaryEncoding",
    "Capture",
    "Cascades",
    "ClusterRule",
    "ColumnRule",
    "CommentRule",
    "Completeness",
    "Computed",
    "ComputedRule",
    "Csv",
    "Ddl",
    "DumpMode",
    "Effects",
    "Erase",
    "Flavour",
    "KeptColumns",
    "Lake",
    "Maintain",
    "MaskKind",
    "MaskRule",
    "MysqlSource",
    "Notifier",
    "Orphans",
    "Pipeline",
    "Policy",
    "Protocol",
    "RenameRule",
    "Route",
    "RowRule",
    "SessionValues",
    "Snapshot",
    "SnapshotMarks",
    "SnapshotMode",
    "Start",
    "TableNames",
    "Tables",
    "TicdcSource",
    "TidbSource",
    "Verify",
    "Writer",
    "Xa",
    "column_pattern",
    "conn_ids",
    "load",
    "matches",
    "matching_places",
    "named_tables",
    "near_table",
    "parse",
]
