"""What spark-submit is told of this machine."""

from __future__ import annotations

from pathlib import Path

from tidegate.config import parse
from tidegate.spark_settings import class_archive, submit_conf

TEXT = """
pipeline: p
lake: {path: unused}
sources: {s: {conn_id: c, flavour: mysql}}
tables: {include: ['*.*']}
"""
OPTIONS = "spark.driver.extraJavaOptions"


def test_the_jvm_shares_classes_where_there_is_an_archive_of_them(tmp_path: Path) -> None:
    pipeline = parse(TEXT, where="p.yaml")
    assert "SharedArchiveFile" not in submit_conf(pipeline, tmp_path)[OPTIONS]
    for root, named in ((tmp_path, True), (tmp_path / "with blank", False)):
        class_archive(root).parent.mkdir(parents=True)
        class_archive(root).write_bytes(b"")
        option = f" -XX:SharedArchiveFile={class_archive(root)}"
        assert submit_conf(pipeline, root)[OPTIONS].endswith(option) == named, "options are one text, cut at blanks"


def test_the_folder_that_spark_makes_at_its_start_is_among_tidegates_own(tmp_path: Path) -> None:
    made = submit_conf(parse(TEXT, where="p.yaml"), tmp_path)["spark.sql.warehouse.dir"]
    assert Path(made).parent == tmp_path / ".tidegate", "by itself Spark makes it in the current folder"
