"""How the papers and the code read, as figures: `python -m tests.style.measures` prints them, by room.

In:  the product's Python files, and the Markdown pages that people read.
Out: a Measure for each name in ratchet.toml: its figure, and the places that cost most.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("include/tidegate", "spark_jobs", "plugins", "dags")
# Pages for readers. The changelog records the past; a template isn't read as prose.
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")

LINE_CHARACTERS = 100
SENTENCE_WORDS = 30
COMPREHENSION_DEPTH = 3
STEM_FILES = 3
WORST_SHOWN = 12

CLAUSE_FIRST = ("what", "who", "whom", "whose", "of", "by", "so")
RELATIVES = ("that", "which", "who", "what")
EMPTY_NAMES = ("found", "one", "told", "there", "mine")

WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_LABEL = re.compile(r"^\s*(?:In|Out|[-*]|\d+\.):?\s+")
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`\n]+`")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Measure(NamedTuple):
    figure: float
    worst: list[str]


class Source(NamedTuple):
    """nodes: all of the tree, walked once."""

    name: str
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]


@functools.cache
def sources() -> tuple[Source, ...]:
    """They stay to the end: no collection looks through their million nodes."""
    paths = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    texts = [(str(path.relative_to(ROOT)), path.read_text()) for path in paths]
    gc.disable()
    try:
        return tuple(_source(name, text) for name, text in texts)
    finally:
        gc.freeze()
        gc.enable()


def _source(name: str, text: str) -> Source:
    tree = ast.parse(text)
    return Source(name, text, tree, tuple(ast.walk(tree)))


def pages() -> dict[str, str]:
    paths = sorted(path for pattern in PAGES for path in ROOT.glob(pattern))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def docstrings(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def sentences(text: str) -> list[str]:
    """The sentences of plain text; a blank line, a list's mark and a label (`In:`) end one."""
    parts: list[list[str]] = [[]]
    for line in text.splitlines():
        begins = not line.strip() or _LABEL.match(line)
        if begins:
            parts.append([])
        parts[-1].append(_LABEL.sub("", line).strip())
    wholes = (" ".join(part).strip() for part in parts)
    split = (re.split(r"(?<=[.!?])\s+(?=[\"`'(A-Z*])", whole) for whole in wholes if whole)
    return [sentence for part in split for sentence in part if WORD.search(sentence)]


def prose(page: str) -> str:
    """A page without code, tables of links and marks: each cell of a table is a paragraph of its own."""
    text = _CODE_BLOCK.sub("\n", page)
    text = re.sub(r"^#+ .*$|^<!--.*-->$|^\|[-|: ]+\|$", "\n", text, flags=re.MULTILINE)
    text = _LINK.sub(r"\1", _CODE.sub("code", text)).replace("**", "").replace("*", "")
    cells = (f"\n{line.replace('|', chr(10) * 2)}\n" if line.startswith("|") else line for line in text.splitlines())
    return "\n".join(cells)


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def clause_first() -> Measure:
    """Docstring sentences that begin with a clause in place of a subject, in a hundred."""
    count, where = 0, Counter[str]()
    for source in sources():
        for docstring in docstrings(source):
            for sentence in sentences(docstring):
                count += 1
                where[source.name] += words(sentence)[0] in CLAUSE_FIRST
    return Measure(round(100 * where.total() / count, 2), worst(where))


def relatives() -> Measure:
    """that, which, who and what, in a thousand words of pages and docstrings."""
    count, where = 0, Counter[str]()
    texts = {name: prose(page) for name, page in pages().items()}
    texts |= {source.name: "\n\n".join(docstrings(source)) for source in sources()}
    for name, text in texts.items():
        spoken = words(text)
        count += len(spoken)
        where[name] += sum(word in RELATIVES for word in spoken)
    return Measure(round(1000 * where.total() / count, 1), worst(where))


def long_sentences() -> Measure:
    """Sentences of pages with more words than a reader holds, in a hundred."""
    count, where = 0, Counter[str]()
    for name, page in pages().items():
        lengths = [len(sentence.split()) for sentence in sentences(prose(page))]
        count += len(lengths)
        where[name] += sum(length > SENTENCE_WORDS for length in lengths)
    return Measure(round(100 * where.total() / count, 2), worst(where))


def comprehensions() -> Measure:
    """Comprehensions per function."""
    functions, where = 0, Counter[str]()
    for source in sources():
        for node in source.nodes:
            functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            where[source.name] += isinstance(node, _COMPREHENSIONS)
    return Measure(round(where.total() / functions, 3), worst(where))


def deep_comprehensions() -> Measure:
    """Comprehensions with loops three deep, in one or one inside another."""
    where = Counter[str]()
    for source in sources():
        where[source.name] += sum(1 for _ in deep(source.tree, 0))
    return Measure(where.total(), worst(where))


def deep(node: ast.AST, depth: int) -> Iterator[ast.AST]:
    """The outermost comprehensions at which the count of loops reaches the bound."""
    if isinstance(node, _COMPREHENSIONS):
        depth += len(node.generators)
        if depth >= COMPREHENSION_DEPTH:
            yield node
            return
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        depth = 0
    for child in ast.iter_child_nodes(node):
        yield from deep(child, depth)


def long_lines() -> Measure:
    """Lines over a hundred characters, in a hundred."""
    count, where = 0, Counter[str]()
    for source in sources():
        lines = source.text.splitlines()
        count += len(lines)
        where[source.name] += sum(len(line) > LINE_CHARACTERS for line in lines)
    return Measure(round(100 * where.total() / count, 2), worst(where))


def repeated_stems() -> Measure:
    """Names of files that three or more files have."""
    names = [Path(source.name).stem for source in sources()]
    stems = Counter(name for name in names if not name.startswith("__"))
    repeated = Counter({stem: count for stem, count in stems.items() if count >= STEM_FILES})
    return Measure(len(repeated), worst(repeated))


def repeated_classes() -> Measure:
    """Names that two or more public classes have."""
    classes = Counter(
        node.name
        for source in sources()
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    repeated = Counter({name: count for name, count in classes.items() if count > 1})
    return Measure(len(repeated), worst(repeated))


def empty_names() -> Measure:
    """Functions with a variable whose name says nothing: `found`, `one`, `told`, `there`, `mine`."""
    where = Counter[str]()
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                stored = (name for name in ast.walk(node) if isinstance(name, ast.Name | ast.arg))
                where[source.name] += any(_name(name) in EMPTY_NAMES for name in stored)
    return Measure(where.total(), worst(where))


def _name(node: ast.Name | ast.arg) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node.ctx, ast.Store) else ""


def worst(where: Counter[str]) -> list[str]:
    return [f"{count:5}  {name}" for name, count in where.most_common(WORST_SHOWN) if count]


MEASURES = {
    "clause_first_percent": clause_first,
    "relatives_per_1000_words": relatives,
    "long_sentences_percent": long_sentences,
    "comprehensions_per_function": comprehensions,
    "deep_comprehensions": deep_comprehensions,
    "long_lines_percent": long_lines,
    "repeated_stems": repeated_stems,
    "repeated_classes": repeated_classes,
    "empty_names": empty_names,
}


def main() -> None:
    for name, measure in MEASURES.items():
        figure, places = measure()
        print(f"{name} = {figure}", *places, sep="\n")


if __name__ == "__main__":
    main()
