"""Bronze in an object store: appended to, followed, packed and emptied as on a disk."""

from __future__ import annotations

import errno
import tempfile
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.kit.s3 import S3
from tests.support.bronze import QuietBronze, pack
from tidegate.errors import LakeRefused, LakeUnavailable
from tidegate.lake.bronze import file as bronze_file
from tidegate.lake.bronze import log as bronze_log
from tidegate.lake.bronze.index import BronzeIndex, read_segments
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.retention import remove
from tidegate.lake.bronze.table import Bronze, check_writable
from tidegate.lake.files import LakeFiles
from tidegate.limits import BRONZE_RUN_FILES_MIN
from tidegate.tables import SEGMENTS


def test_bronze_lives_in_an_object_store(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = LakeFiles(s3.folder(), s3.options)
    check_writable(lake)
    assert BronzeLog.load(lake) is None
    quiet, writer, index = QuietBronze(lake), Bronze(lake, "a"), BronzeIndex(lake)
    for ts in range(10, 10 * BRONZE_RUN_FILES_MIN + 30, 10):
        monkeypatch.setattr(bronze_file, "PUT_BYTES_MAX", 0 if ts == 30 else 1 << 20)  # as one stream, or one request
        quiet.land("a", (ts, ts + 1, ts + 1))
        assert index.refresh(0)
    assert writer.last_segments()[-1].seq == len(quiet.landed)
    pack(lake)
    assert index.refresh(0)
    assert len({ref.path for ref in index.refs["a"]}) == 2
    found = [segment.seq for _, segment in read_segments(lake, index.refs["a"])]
    assert found == [one.seq for one in quiet.landed]
    log = BronzeLog.load(lake)
    assert log is not None
    assert log.vacuum(dry_run=True) == [], "all of it is young"
    packed = log.files()["a"][0]
    remove(log, [packed])
    monkeypatch.setattr(bronze_log, "unneeded", lambda *_, **__: [unquote(packed.path)])  # days later
    before = lake.written_ms(SEGMENTS.path).keys()
    assert log.vacuum(dry_run=False) == [unquote(packed.path)]
    assert before - lake.written_ms(SEGMENTS.path).keys() == {unquote(packed.path)}
    log.checkpoint()
    assert Bronze(lake, "a").last_segments()[-1].seq == len(quiet.landed)
    assert BronzeIndex(lake).refresh(0)


def test_two_sources_land_side_by_side(s3: S3) -> None:
    lake = LakeFiles(s3.folder(), s3.options)

    def land(source: str) -> None:
        quiet, writer = QuietBronze(lake), Bronze(lake, source)
        for ts in range(10, 130, 10):
            writer.append([quiet._segment(source, ts, ts, ts)])

    threads = [threading.Thread(target=land, args=(source,)) for source in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = BronzeLog.load(lake)
    assert log is not None
    assert {source: len(files) for source, files in log.files().items()} == {"a": 12, "b": 12}
    assert log.version == 23


def test_a_store_without_keys_is_told_so_and_not_the_address_of_a_cloud() -> None:
    lake = LakeFiles("s3://lake/shop", {"aws_metadata_endpoint": "http://127.0.0.1:1", "aws_allow_http": "true"})
    with pytest.raises(LakeUnavailable, match=r"no keys are given for this store, .* gives none; name a con") as error:
        check_writable(lake)
    assert "whose extra has AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in str(error.value)
    assert "127.0.0.1" not in str(error.value)


def test_a_folder_that_takes_nothing_is_refused_to_root_too(tmp_path: Path) -> None:
    with pytest.raises(LakeRefused, match=r"/proc: nothing can be written in it: .*; set lake.path to a folder"):
        check_writable(LakeFiles("/proc/nowhere/lake"))
    check_writable(LakeFiles(str(tmp_path / "new")))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_no_place_to_write_to_for_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    with pytest.raises(LakeUnavailable, match=r"No space left on device; make room on its disk: docs/runbooks/disk-fu"):
        check_writable(LakeFiles(str(tmp_path)))
