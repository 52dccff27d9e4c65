"""A connection's variable that is set, but empty: what a failed `export AIRFLOW_CONN_X="$(...)"` leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli import main
from tidegate.home import EXIT_USAGE, PIPELINES_ENV


@pytest.mark.parametrize("empty", ["", " \n"])
def test_init_with_an_empty_connection_is_one_error_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], empty: str
) -> None:
    monkeypatch.setenv(PIPELINES_ENV, str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", empty)
    with pytest.raises(SystemExit) as ended:
        main.run(["init", "shop", "--tables", "shop.*"])
    said = capsys.readouterr()
    assert ended.value.code == EXIT_USAGE
    assert said.out == "", "nothing before it says that the connection is there"
    assert said.err.startswith("tidegate: AIRFLOW_CONN_SHOP_DB: the variable is set, but empty; set it to ")
    assert len(said.err.splitlines()) == 1
    assert not [*tmp_path.iterdir()]
