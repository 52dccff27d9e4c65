"""The page where a pasted message finds its error: the messages of the code as patterns, tried by a script.

In:  class -> (message, remedy), as tools/reference.py reads them from the code.
Out: page() for docs/reference/find-error.md, script() for docs/reference/find-error.js.

The script asks nobody: all patterns are in it, and the pasted text stays in the browser. Without a
script, as on a code host, the page leads to the list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tidegate.text_layout import counted

UNKNOWN = "…"
_CONSTANT_LETTERS_MIN = 8  # fewer fit too many messages

_PAGE = """# Find an error by its message

<!-- written by `make docs` -->

Paste a message, or a whole log, as it stands. The text stays in your browser.

<div id="find-error">
<textarea rows="8" style="width: 100%" aria-label="A message, or a log" placeholder="tidegate: ..."></textarea>
<div role="status" aria-live="polite"></div>
</div>
<script src="find-error.js"></script>

On a code host no script runs. Then take some words of the message, no names and no numbers, and search the page of
[all errors](errors.md) for them.

This page knows {count} of the code. [Troubleshooting](../troubleshooting.md) has the reasons why a table is held.

## By class

The log of a task, and `fault` in the JSON of the page, name the class of an error.

| class | messages | next |
|---|---|---|
{classes}
"""

_SCRIPT = """// Written by `make docs`: the messages of the code, in which … stands for any text.
(function () {
  const errors = %s;
  const plain = (text) => text.replace(/[`']/g, "'").replace(/\\s+/g, " ");
  const escaped = (text) => text.replace(/[.*+?^${}()|[\\]\\\\]/g, "\\\\$&");
  const letters = (text) => text.replace(/…/g, "").length;
  const known = errors
    .map((error) => ({ ...error, size: letters(error.what), way: plain(error.remedy).split("…")[0].slice(0, 16),
      pattern: new RegExp(error.what.split("…").map((part) => escaped(plain(part))).join(".*?"), "i") }))
    .sort((one, other) => other.size - one.size);
  function matches(text) {
    const seen = [];
    for (const line of text.split("\\n").map(plain)) {
      let left = 3;
      const fit = known.filter((error) => error.pattern.test(line));
      fit.sort((one, other) => line.includes(other.way) - line.includes(one.way));  // two places may say the same
      for (const error of fit) {
        if (left && !seen.some((each) => each.what === error.what)) {
          seen.push(error);
          left -= 1;
        }
      }
    }
    return seen.slice(0, 20);
  }
  function element(name, text) {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  }
  function show(field, answer) {
    const hits = matches(field.value);
    answer.replaceChildren();
    if (!hits.length) {
      if (field.value.trim()) answer.append(element("p", "No message of this release fits."));
      return;
    }
    for (const error of hits) {
      const head = element("p", "");
      const link = element("a", error.kind);
      link.href = "errors.html#" + error.kind.toLowerCase();
      head.append(link, element("span", " (" + error.after + "): "), element("code", error.what));
      const way = element("p", "What to do: ");
      way.append(element("strong", error.remedy));
      answer.append(head, way);
    }
  }
  const part = document.getElementById("find-error");
  const [field, answer] = part.children;
  field.addEventListener("input", () => show(field, answer));
  show(field, answer);
})();
"""


def page(messages: Mapping[str, set[tuple[str, str]]], after: Mapping[str, str]) -> str:
    """after: by class, retry or stop."""
    rows = []
    for name, how in after.items():
        count = len({what for what, _ in messages.get(name, ())})
        link = f"[{name}](errors.md#{name.lower()})"
        rows.append(f"| {link} | {count or 'its message says itself what to do'} | {how.lower()} |")
    return _PAGE.format(count=counted(len(_entries(messages, after)), "message", "messages"), classes="\n".join(rows))


def script(messages: Mapping[str, set[tuple[str, str]]], after: Mapping[str, str]) -> str:
    """One line an error: a change of one is a change of one line."""
    lines = ",\n    ".join(json.dumps(entry, ensure_ascii=False) for entry in _entries(messages, after))
    return _SCRIPT % f"[\n    {lines}\n  ]"


def _entries(messages: Mapping[str, set[tuple[str, str]]], after: Mapping[str, str]) -> list[dict[str, str]]:
    entries = []
    for name, how in after.items():
        for what, remedy in sorted(messages.get(name, ())):
            if len(what.replace(UNKNOWN, "").replace(" ", "")) >= _CONSTANT_LETTERS_MIN:
                cells = {"kind": name, "after": how.lower()}
                entries.append(cells | {"what": _one_line(what), "remedy": _one_line(remedy)})
    return entries


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
