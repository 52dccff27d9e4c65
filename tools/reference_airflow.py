"""Pages of docs/reference about Airflow: the JSON API of the page, and the params of DAG runs.

In:  the code of the page's application and of dags/, read as text (neither is run); the models of
     the pipeline file; the JSON of a look made by hand.
Out: api_page() and params_page(), Markdown for tools/reference.py.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from tidegate import config
from tidegate.lake.figures.maintained import LastMaintain
from tidegate.pipelines import plain
from tidegate.pipelines.plain_keys import KEYS
from tidegate.segments.prewrites import Prewrite

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for the look that tests make by hand
_APPLICATION: Final = ROOT / "plugins/tidegate_airflow/page/application.py"
_FORM: Final = ROOT / "plugins/tidegate_airflow/params.py"
_API_HEAD: Final = """# The page's JSON API

<!-- written by `make docs` -->

The [page in Airflow](../page.md) is an application below `/tidegate` of Airflow's address. A program logs in with a
token of Airflow's API (`POST /auth/token`), sent as `Authorization: Bearer ...`. A user reads a pipeline if Airflow
lets the user read its DAG `<pipeline>__apply`.

## Addresses
"""
_JSON_HEAD: Final = """
## The JSON

`status.json` answers with these values. `tidegate status --json` prints them, too, and besides `format` and `latency`.
Times are Unix seconds, or ISO texts in UTC; a `..._ts` is a [commit_ts](../glossary.md). null: not known. New keys may
come; a key that goes is named in the changelog a release before. The status code is 503 if the lake can't be read: then
`state` is `unreadable`, `why` says why, and only the keys marked with * are there.
"""
_PARAMS_HEAD: Final = """# Params of DAG runs

<!-- written by `make docs` -->

A run started by hand, in Airflow's trigger form or over its API, takes these params. Their defaults are the values of
the [pipeline file](../pipeline.md), and each is for this run alone. A run refuses any other setting.
"""
_BY_NAME: Final = ("verified", "capture")
_ALWAYS: Final = {"pipeline", "state", "why", "capture", "schema_changes", "prewrites", "maintenance"}


# --- the API --------------------------------------------------------------------------------------------------------
def api_page() -> str:
    """Its addresses with their parameters, and the keys of its JSON."""
    lines = [_API_HEAD, "| address | parameters | answer |", "|---|---|---|", *_addresses(), _JSON_HEAD]
    members = _members()
    lines += ["| key | members | content |", "|---|---|---|"]
    for key, meaning in KEYS.items():
        star = "*" if key in _ALWAYS else ""
        shown = ", ".join(f"`{name}`" for name in members.get(key, ()))
        lines.append(f"| `{key}`{star} | {shown} | {meaning} |")
    return "\n".join(lines).rstrip() + "\n"


def _addresses() -> Iterator[str]:
    for node in ast.parse(_APPLICATION.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) in ("app.get", "app.post"):
                method, path = ast.unparse(mark.func)[4:].upper(), ast.literal_eval(mark.args[0])
                needs = "; needs the right to edit the DAG" if "needs_edit" in ast.unparse(mark) else ""
                needs += ", and the same origin" if "same_origin" in ast.unparse(mark) else ""
                kind = "JSON" if path.endswith(".json") else "a script" if path.endswith(".js") else "a page"
                about = " ".join((ast.get_docstring(node) or "").split()).rstrip(".")
                yield f"| `{method} /tidegate{path}` | {_parameters(node)} | {kind}: {about}{needs} |"


def _parameters(node: ast.FunctionDef) -> str:
    names = []
    for argument in node.args.args:
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg in ("dag_id", "user") or "Depends" in kind:
            names += ["`q`", "`state`", "`sort`", "`page`", "`span`"] if "tables_asked" in kind else []
            names += ["the form's fields"] if "form_of" in kind else []
        else:
            names.append(f"`{argument.arg}`")
    return ", ".join(names)


def _members() -> dict[str, list[str]]:
    """The names below each key, of a look with everything in it."""
    from tests.kit.pipeline_views import CHASING, view

    cells = plain.plain(replace(view(6), captures={"eu": CHASING}))
    made = {key: _names_in(value, key) for key, value in cells.items()}
    made |= {"maintenance": [part.name for part in fields(LastMaintain)]}
    made |= {"prewrites": [part.name for part in fields(Prewrite)]}
    return made | {"schema_changes": list(_literal_keys(Path(plain.__file__), "_change"))}


def _names_in(value: Any, key: str) -> list[str]:
    if isinstance(value, list | tuple):
        return _names_in(value[0], "") if value else []
    if not isinstance(value, dict):
        return []
    if key in _BY_NAME:  # a table's or a source's, and what is below it
        return _names_in(next(iter(value.values()), None), "")
    return list(value)


def _literal_keys(path: Path, function: str) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Dict):
                    yield from (str(key.value) for key in inner.keys if isinstance(key, ast.Constant))


# --- params ---------------------------------------------------------------------------------------------------------
def params_page() -> str:
    """Each DAG with params: those of the pipeline file, with its bounds, and its own."""
    lines, form = [_PARAMS_HEAD], _on_the_form()
    for path in sorted((ROOT / "dags").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts, own = _parts(tree), list(_own(tree))
        if not parts and not own:
            continue
        about = (ast.get_docstring(tree) or "").split("\n\n")[0]
        lines += [f"## ‹pipeline›__{path.stem}\n", f"{' '.join(about.split())}\n"]
        lines += ["| param | values | default | meaning |", "|---|---|---|---|"]
        for part in parts:
            model = type(getattr(_ANY, part))
            schema = model.model_json_schema()
            for name in form[model.__name__]:
                about = schema["properties"][name]["description"]
                default = getattr(getattr(_ANY, part), name)
                lines.append(f"| `{name}` | {_values(schema, name)} | `{default}` | {_cell(about)} |")
        lines += [f"| `{name}` | | `{default}` | {_cell(about)} |" for name, default, about in own]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _parts(tree: ast.Module) -> list[str]:
    """The parts of a pipeline file whose settings a DAG's runs take."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "params_of"]
    return [call.args[0].attr for call in calls if isinstance(call.args[0], ast.Attribute)]


_ANY: Final = config.parse(
    "pipeline: p\nlake: {path: x}\nsources: {s: {conn_id: c, flavour: mysql}}\ntables: {include: ['*.*']}\n", where="p"
)


def _on_the_form() -> dict[str, list[str]]:
    """Model -> names of its settings for runs, as params.py lists them."""
    for node in ast.parse(_FORM.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ON_THE_FORM":
            assert isinstance(node.value, ast.Dict)
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {ast.unparse(key): list(ast.literal_eval(names)) for key, names in pairs if key is not None}
    raise LookupError("params.py has no ON_THE_FORM")


def _own(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(name, default, meaning) of the params beside the settings of the pipeline file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(value, ast.Call):
                continue
            if ast.unparse(value.func) == "tables_param":
                yield (
                    str(key.value),
                    "[]",
                    f"{ast.literal_eval(value.args[0])} (names, or patterns as in tables.include)",
                )
            elif ast.unparse(value.func) == "Param":
                named = {each.arg: ast.literal_eval(each.value) for each in value.keywords}
                default = named["default"] if "default" in named else ast.literal_eval(value.args[0])
                yield str(key.value), str(default), str(named["description"])


def _values(schema: dict[str, Any], name: str) -> str:
    field = schema["properties"][name]
    shown = []
    for branch in field.get("anyOf") or [field]:
        kind = schema["$defs"][branch["$ref"].rsplit("/", 1)[-1]] if "$ref" in branch else branch
        if "enum" in kind:
            shown.append(", ".join(f"`{value}`" for value in kind["enum"]))
            continue
        bounds = [f"{words} {kind[key]:g}" for key, words in _BOUNDS.items() if key in kind]
        shown.append(" ".join([kind["type"].replace("null", "none"), *bounds]).strip())
    return " or ".join(shown)


_BOUNDS: Final = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}


def _cell(text: str) -> str:
    return " ".join(text.replace("<", "&lt;").replace("|", r"\|").split())
