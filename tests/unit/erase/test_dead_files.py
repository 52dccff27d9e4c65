"""Values that an erasure can't reach are named in its certificate."""

from __future__ import annotations

from pathlib import Path

from tidegate.erase.dead_files import unlisted
from tidegate.lake.files import LakeFiles


def test_a_bucket_may_have_parts_of_uploads_and_a_disk_has_none(tmp_path: Path) -> None:
    assert unlisted(LakeFiles(str(tmp_path))) == []
    (line,) = unlisted(LakeFiles("s3://bucket/lake", {"AWS_REGION": "us-east-1"}))
    assert "lifecycle rule" in line
