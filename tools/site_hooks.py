"""Hooks of mkdocs (`make site`): the navigation, the pages of the root, and the links to code.

In:  the pages of docs/, as a code host shows them: their links lead to files of the repository.
Out: the same pages for mkdocs. The lists of docs/README.md are the navigation. A link to a page of the root leads to
     its copy in the site. A link to a file of code becomes a link into TIDEGATE_SITE_CODE (such as
     https://host/owner/repository/blob/main), or plain text without it.
"""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any

from mkdocs.structure.files import File

# Pages outside of docs/, and their places in the site.
ROOT_PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
CODE_ENV = "TIDEGATE_SITE_CODE"
# mermaid.min.js, if `make site` has it: pages with a drawing then ask no other host for it.
MERMAID_ENV = "MERMAID"
MERMAID = "assets/mermaid.min.js"
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"(##+) (.+)")
_ITEM = re.compile(r"- \[([^\]]+)\]\(([^)#]+)\)")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def slug(heading: str, separator: str = "-") -> str:
    """The anchor that code hosts give a heading, so that one link fits both."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    with open(os.path.join(config.docs_dir, "README.md"), encoding="utf-8") as opened:  # noqa: PTH118, PTH123
        config.nav = navigation(opened.read())
    return config


def navigation(index: str) -> list[Any]:
    """The index as mkdocs' nav: `## Part`, `### Group` and `- [Title](page.md): what it is for` nest."""
    levels: list[list[Any]] = [[{"Home": "README.md"}]]
    for line in index.splitlines():
        if heading := _HEADING.match(line):
            depth = len(heading[1]) - 1
            children: list[Any] = []
            levels[depth - 1].append({heading[2]: children})
            levels = [*levels[:depth], children]
        elif item := _ITEM.match(line):
            target = posixpath.normpath(posixpath.join("docs", item[2]))
            levels[-1].append({item[1]: ROOT_PAGES.get(target, item[2])})
    return levels[0]


def on_files(files: Any, config: Any) -> Any:
    root = os.path.dirname(config.config_file_path)  # noqa: PTH120 - mkdocs has texts
    for source, place in ROOT_PAGES.items():
        with open(os.path.join(root, source), encoding="utf-8") as opened:  # noqa: PTH118, PTH123
            files.append(File.generated(config, place, content=opened.read()))
    if script := os.environ.get(MERMAID_ENV):
        files.append(File.generated(config, MERMAID, abs_src_path=script))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    if not os.environ.get(MERMAID_ENV) or 'class="mermaid"' not in output:
        return output
    place = posixpath.relpath(MERMAID, posixpath.dirname(page.file.dest_uri) or ".")
    return output.replace("</head>", f'<script src="{place}"></script></head>', 1)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    place = page.file.src_uri
    source = next((name for name, at in ROOT_PAGES.items() if at == place), f"docs/{place}")
    parts = _FENCED.split(markdown)
    return "".join(part if number % 2 else _linked(part, source, place) for number, part in enumerate(parts))


def _linked(text: str, source: str, place: str) -> str:
    return _LINK.sub(lambda link: _link(link, source, place), text)


def _link(link: re.Match[str], source: str, place: str) -> str:
    image, words, target = link.groups()
    path, sharp, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return link[0]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if wanted in ROOT_PAGES:
        inside = ROOT_PAGES[wanted]
    elif wanted.startswith("docs/"):
        inside = wanted.removeprefix("docs/")
    else:
        code = os.environ.get(CODE_ENV)
        return f"[{words}]({code}/{wanted})" if code else words
    return f"{image}[{words}]({posixpath.relpath(inside, posixpath.dirname(place) or '.')}{sharp}{anchor})"
