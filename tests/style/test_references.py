"""Pages made from code say what the code does: the API's keys, the params of runs, and a pasted message."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

from tools import reference

from tests.dags.browser import browser
from tests.kit.pipeline_views import CHASING, view
from tidegate import remedy
from tidegate.pipelines.plain import plain
from tidegate.pipelines.plain_keys import KEYS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference"


def test_every_key_of_the_json_has_its_meaning_and_no_other_has() -> None:
    cells = plain(replace(view(6), captures={"eu": CHASING}))
    assert set(cells) == set(KEYS)
    json.dumps(cells)


def test_every_address_of_the_page_is_in_the_reference() -> None:
    text = (ROOT / "plugins/tidegate_airflow/page/application.py").read_text()
    paths = re.findall(r"^@app\.(get|post)\(\"([^\"]+)\"", text, re.MULTILINE)
    page = (FOLDER / "api.md").read_text()
    assert len(paths) >= 7
    assert all(f"`{method.upper()} /tidegate{path}`" in page for method, path in paths)


def test_the_params_in_the_reference_are_those_of_the_trigger_form() -> None:
    from tidegate_airflow.params import ON_THE_FORM

    rows = re.findall(r"^\| `(\w+)` \|", (FOLDER / "params.md").read_text(), re.MULTILINE)
    own = {"table", "dry_run", "tables", "repair", "where", "follow_keys", "wait"}
    assert {name for names in ON_THE_FORM.values() for name in names} == set(rows) - own
    assert own <= set(rows)


def test_every_class_of_an_error_has_a_heading_to_link_to() -> None:
    headings = set(re.findall(r"^## (\w+)$", (FOLDER / "errors.md").read_text(), re.MULTILINE))
    linked = set(re.findall(r"\[(\w+)\]\(errors\.md#\w+\)", (FOLDER / "find-error.md").read_text()))
    assert linked == headings == {name for name, _ in reference._kinds()}


def test_a_way_out_that_several_errors_have_is_on_the_page_whole() -> None:
    page = (FOLDER / "errors.md").read_text()
    shared = remedy.NEW_LAKE, remedy.PUT_BACK, remedy.BRONZE_BACK, remedy.REPORT
    assert [text for text in shared if text.replace("`", "'") not in page] == []


def test_a_pasted_message_finds_its_error(tmp_path: Path) -> None:
    """In a browser, from a log of a task, with names and numbers in the places of the dots."""
    (tmp_path / "find-error.js").write_text((FOLDER / "find-error.js").read_text())
    part = re.search(r'<div id="find-error">.*?</script>', (FOLDER / "find-error.md").read_text(), re.DOTALL)
    assert part is not None
    page = tmp_path / "find-error.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{part[0]}", encoding="utf-8")
    pasted = (
        "[2026-11-29, 12:00:00 UTC] tidegate: AIRFLOW_CONN_SHOP_DB: connection 'shop_db' is not defined; set this"
        " variable\nsomething of Spark's own\nlake.path: s3://b/l is already the lake of shop"
    )
    with browser() as driver:
        driver.get(page.as_uri())
        field, answer = driver.find_element("css selector", "textarea"), driver.find_element("css selector", "[role]")
        field.send_keys(pasted)
        shown = answer.text
        assert "NoConnectionError (stop): connection … is not defined" in shown
        assert "'tidegate connection' prints that of a server" in shown
        assert "a lake belongs to one pipeline: give it a path of its own" in shown
        links = [each.get_attribute("href") for each in answer.find_elements("css selector", "a")]
        assert {str(link).rpartition("#")[2] for link in links} == {"configerror", "noconnectionerror"}
        field.clear()
        field.send_keys("all is well")
        assert answer.text == "No message of this release fits."


def test_each_pattern_of_the_script_is_one_that_the_code_raises() -> None:
    text = (FOLDER / "find-error.js").read_text()
    entries = ast.literal_eval(text[text.index("[\n") : text.index("\n  ];") + 4])
    messages = {" ".join(what.replace("`", "'").split()) for of in reference._messages().values() for what, _ in of}
    assert len(entries) > 300
    assert {entry["what"] for entry in entries} <= messages
