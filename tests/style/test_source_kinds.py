"""Other rooms ask a source for its traits, and not for its kind, so that a new kind can't be forgotten.

In:  the product's modules outside the rooms of the kinds.
Out: the questions for a kind that would pass over a new one, and more questions than there were.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.style.measures import PRODUCT, ROOT
from tidegate.config.source_keys.sources import KINDS

# Each room reads sources of one kind. config has the kinds themselves.
ROOMS = tuple(f"include/tidegate/{room}/" for room in ("config", "mysql", "pump", "changefeed", "ticdc", "tidb"))
# Questions that are left: what opens a source, examines it, or serves one kind alone. Never more.
LEFT = {
    "include/tidegate/cli/check.py": 1,
    "include/tidegate/cli/pump.py": 1,
    "include/tidegate/pipelines/opened.py": 3,
}
NAMES = frozenset(kind.__name__ for kind in KINDS.values())


def test_no_question_for_a_kind_is_added() -> None:
    asked = Counter[str]()
    for path in sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if not name.startswith(ROOMS):
            asked.update(name for _ in questions(ast.parse(path.read_text())))
    assert asked == LEFT, "add a trait to config/source_keys/source_traits.py, and ask that"


def questions(tree: ast.Module) -> Iterator[ast.AST]:
    """Raises AssertionError for a question that would pass over a new kind."""
    refused = {id(node.test.operand) for node in ast.walk(tree) if isinstance(node, ast.If) and _refuses(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Match) and any(_names_kind(case.pattern) for case in node.cases):
            last = ast.unparse(node.cases[-1].body)
            assert last.startswith("assert_never("), f"line {node.lineno}: its last case is no assert_never"
            yield node
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and _names_kind(node.args[1]):
            assert id(node) in refused, f"line {node.lineno}: a new kind passes; match it, with assert_never"
            yield node


def _refuses(node: ast.If) -> bool:
    """Whether it is `if not ...: raise`."""
    negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
    return negated and isinstance(node.body[0], ast.Raise)


def _names_kind(node: ast.AST) -> bool:
    named = (getattr(inner, "id", getattr(inner, "attr", None)) for inner in ast.walk(node))
    return not NAMES.isdisjoint(named)


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        ("if isinstance(a, TidbSource): pass", None),
        ("b = [a for a in s if not isinstance(a, config.TidbSource | X)]", None),
        ("if not isinstance(a, TidbSource): b()", None),
        ("if not isinstance(a, TidbSource): raise X", 1),
        ("match a:\n case TidbSource(): pass", None),
        ("match a:\n case TidbSource(): pass\n case kind: assert_never(kind)", 1),
        ("if isinstance(a, str): pass", 0),
    ],
)
def test_a_question_is_seen(code: str, asks: int | None) -> None:
    tree = ast.parse(code)
    if asks is None:
        with pytest.raises(AssertionError, match="line 1"):
            list(questions(tree))
    else:
        assert len(list(questions(tree))) == asks
