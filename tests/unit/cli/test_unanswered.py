"""A question that nobody answers is no fault of tidegate."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tidegate.cli import main
from tidegate.home import EXIT_INTERRUPTED, EXIT_USAGE, PIPELINES_ENV


class Interrupted(io.StringIO):
    """Ctrl-C at the question."""

    def readline(self, _size: int | None = None) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("typed", "code"), [(io.StringIO(""), EXIT_USAGE), (Interrupted(), EXIT_INTERRUPTED)])
def test_a_question_without_an_answer_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: io.StringIO, code: int
) -> None:
    monkeypatch.setenv(PIPELINES_ENV, str(tmp_path))
    monkeypatch.delenv("AIRFLOW_CONN_SHOP_DB", raising=False)
    monkeypatch.setattr("sys.stdin", typed)
    with pytest.raises(SystemExit) as ended:
        main.run(["init", "shop", "--tables", "shop.*"])
    said = capsys.readouterr().err
    assert ended.value.code == code
    assert "a fault of tidegate" not in said
    assert ("tidegate: command line: nobody answers its question; run it in a terminal" in said) is (code == EXIT_USAGE)
    assert not [*tmp_path.iterdir()]
