"""The frame of each page: head, style, and the script that keeps it up to date.

In:  a title and a body.
Out: a whole HTML document, and the headers that it is sent with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

_STYLE: Final = """
:root {color-scheme: light dark; --text: #1a202c; --page: #fff; --soft: #4a5568; --line: #cbd5e0; --card: #f7fafc;
 --bad: #9b2c2c; --good: #22543d; --link: #2b6cb0}
@media (prefers-color-scheme: dark) {:root {--text: #e2e8f0; --page: #12161c; --soft: #a0aec0; --line: #2d3748;
 --card: #1a202c; --bad: #feb2b2; --good: #9ae6b4; --link: #90cdf4}}
body {font: 15px/1.5 system-ui, sans-serif; margin: 0; color: var(--text); background: var(--page)}
main {margin: 1.2rem; max-width: 110rem} a {color: var(--link)} code {overflow-wrap: anywhere}
h1 {font-size: 1.3rem; margin: 0 0 .8rem} h2 {font-size: 1.25rem; margin: 0 0 .2rem} h3 {margin: 1.4rem 0 .4rem}
p {margin: .3rem 0} table {border-collapse: collapse; width: 100%} .wide {overflow-x: auto}
td, th {border-bottom: 1px solid var(--line); padding: .35rem .9rem .35rem 0; text-align: left; vertical-align: top}
thead th {color: var(--soft); font-weight: 600; white-space: nowrap} th[scope=row] {font-weight: 600}
td:last-child {min-width: min(16rem, 70vw); max-width: 48rem; overflow-wrap: anywhere}
:focus-visible {outline: 2px solid var(--link); outline-offset: 2px} .soft {color: var(--soft)}
.bad {color: var(--bad)} .good {color: var(--good)} .badge, .state.held {font-weight: 600}
.state.held {color: var(--bad)}
.badge {border: 1px solid currentColor; border-radius: 1rem; padding: .05rem .6rem;
 font-size: .85rem; white-space: nowrap}
.road, .road ul, .road li {display: flex; gap: .6rem; align-items: center}
.road ul {flex-direction: column; align-items: stretch; list-style: none; padding: 0; margin: 0; flex: 3 1 0}
.road .stop {flex: 1 1 0; min-width: 0; overflow-wrap: anywhere} .arrow {font-size: 1.4rem; color: var(--soft)}
.stop {display: flex; flex-direction: column; background: var(--card); border: 1px solid var(--line);
 border-radius: .5rem; padding: .6rem .9rem; max-width: 24rem} .stop span {color: var(--soft)}
.stop .bad {color: var(--bad)} .hop {border-style: dashed} .slow {border: 2px solid var(--bad)}
dl {display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .2rem 1rem; margin: .3rem 0}
dt {color: var(--soft)} dd {margin: 0}
@media (max-width: 70rem) {.road, .road ul, .road li {flex-direction: column; align-items: stretch}
 .road ul, .road .stop {flex: none} .stop {max-width: none} .arrow {text-align: center; transform: rotate(90deg)}
 dl {grid-template-columns: 1fr}} .charts {display: grid; gap: 1.2rem;
 grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr))}
figure {margin: .5rem 0; max-width: 40rem; display: flex; flex-direction: column}
figcaption {flex: 1; color: var(--soft)} figcaption b {color: var(--text)}
svg {display: block} svg.chart {width: 100%; height: 6rem; border-bottom: 1px solid var(--line)}
svg.spark {width: 7.5rem; height: 1.5rem} polyline {fill: none; stroke: var(--link); stroke-width: 2;
 vector-effect: non-scaling-stroke} .axis {display: flex; justify-content: space-between; color: var(--soft)}
form {display: flex; flex-wrap: wrap; gap: .8rem; margin: .4rem 0} nav a {margin-right: .6rem}
nav a[aria-current] {font-weight: 700; text-decoration: none; color: var(--text)}
input, select, button, textarea {font: inherit; padding: .15rem .4rem}
.acts {display: flex; flex-wrap: wrap; gap: .6rem; list-style: none; padding: 0; margin: .4rem 0}
.button {display: inline-block; border: 1px solid var(--link); border-radius: .4rem; padding: .3rem .9rem;
 background: var(--card); color: var(--link); text-decoration: none; font-weight: 600; cursor: pointer}
.ask {display: block} .ask textarea {width: min(100%, 32rem)} fieldset {border: 1px solid var(--line)}
@media (max-width: 44rem) {.wide thead {display: none}
 .wide table, .wide tbody, .wide tr, .wide td, .wide th {display: block}
 .wide tr {border-bottom: 1px solid var(--line); padding: .5rem 0} .wide td, .wide th {border: 0; padding: .1rem 0}
 .wide td:empty {display: none} .wide td:last-child {min-width: 0}
 .wide td::before {content: attr(data-label) ": "; color: var(--soft)}}
@media (min-width: 150rem) {html {font-size: 22px} body {font-size: 1rem} main {max-width: none}
 .stop, figure {max-width: none} td:last-child {max-width: 70rem} svg.chart {height: 8rem}}
#stale {position: fixed; bottom: 0; left: 0; right: 0; margin: 0; z-index: 1}
.road code {display: inline-block; max-width: 100%} .under {margin-left: 1.5rem}
.said {border-left: .3rem solid currentColor; background: var(--card); padding: .5rem .8rem; overflow-wrap: anywhere}
"""

# The whole script. It changes the page in place: the focus, a table's scrolling and a typed word stay.
SCRIPT: Final = """'use strict';
const every = 5000;
const say = text => {
  const place = document.getElementById('stale');
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
};
const name = of => of.getAttribute('aria-label') ?? of.getAttribute('href') ?? of.textContent;
const tagged = of => [...document.querySelectorAll(of.tagName)];
const alike = of => tagged(of).filter(each => name(each) === name(of));
function waits() {
  return String(getSelection()) || document.activeElement.matches('input, select, textarea');
}
function become(old, newer) {
  if (old.nodeName !== newer.nodeName) return old.replaceWith(newer);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== newer.data) old.data = newer.data;
    return;
  }
  for (const each of [...old.attributes])
    if (!newer.hasAttribute(each.name)) old.removeAttribute(each.name);
  for (const {name, value} of newer.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...newer.childNodes]];
  before.slice(after.length).forEach(each => each.remove());
  after.forEach((each, number) => before[number] ? become(before[number], each) : old.append(each));
}
async function renew() {
  if (document.hidden) return;
  if (waits()) return say('This page waits while a field has the focus, or text is selected.');
  try {
    const answer = await fetch(location.href, {credentials: 'same-origin'});
    const refused = [401, 403].includes(answer.status);
    if (refused) return say('Your login has ended: open the page again.');
    if (!answer.ok) throw new Error(answer.status);
    const newer = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
    if (!newer || waits()) return;
    const at = document.activeElement;
    const [known, place] = [at.cloneNode(true), alike(at).indexOf(at)];
    become(document.querySelector('main'), document.adoptNode(newer));
    if (at !== document.body && !(at.isConnected && name(at) === name(known))) {
      at.blur();
      alike(known)[place]?.focus({preventScroll: true});
    }
    say('');
  } catch (error) {
    say("Airflow doesn't answer: this page shows its last answer.");
  }
}
setInterval(renew, every);
"""

# A page with a form isn't renewed, so a person's text stays. Of a judgement's two answers the last
# one counts: nothing has no tables. A pressed button can't be pressed again.
ASK_SCRIPT: Final = """'use strict';
document.querySelector('form.ask')?.addEventListener('change', event => {
  const {name, value} = event.target;
  const tables = [...event.currentTarget.querySelectorAll('[name=changes]')];
  if (name === 'word' && value === 'nothing') tables.forEach(each => { each.checked = false; });
  const word = event.currentTarget.querySelector('[name=word][value=tables]');
  if (name === 'changes' && word) word.checked = true;
  const lacks = word?.checked && !tables.some(each => each.checked);
  word?.setCustomValidity(lacks ? 'Choose its tables.' : '');
});
document.querySelector('form.ask')?.addEventListener('submit', event => {
  const button = event.target.querySelector('button');
  setTimeout(() => { button.disabled = true; });
});
"""

# Where a host or a place in a log may break: after "@", and before other separators.
_SEPARATOR: Final = re.compile(r"(?<=@)|(?<=\w)(?=[.:/_-]\w)")

# Nothing from elsewhere, no script but its own, no frame but Airflow's.
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'self'"
    ),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


def document(title: str, body: str, root: str, script: str = "page.js") -> str:
    """A whole page. root: relative path from the page to the application's root, "" or "../". script: file name of its
    script.
    """
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}</style><script src='{root}{script}' defer></script></head><body>"
        "<p id='stale' class='said bad' role='status' hidden></p>"
        f"<main><h1>tidegate</h1>{body}</main></body></html>"
    )


def asks_for_html(scope: Any) -> bool:
    """Whether a browser opens a page, or sends a form. Scripts and programs don't ask for HTML. scope: ASGI's."""
    return b"text/html" in dict(scope.get("headers", ())).get(b"accept", b"")


def breakable(text: str) -> str:
    """A host, or a place in a log, as HTML: a narrow box breaks it before a separator, not in a word."""
    return _SEPARATOR.sub("<wbr>", escape(text))


def wide_table(label: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. In a narrow window it is a list, with each cell after its head.

    heads: as many as each row has cells. rows: cells of HTML, the row's name first.
    """
    ahead = "".join(f"<th scope='col'>{head}</th>" for head in heads)
    body = "".join(
        f"<tr><th scope='row'>{name}</th>"
        + "".join(f"<td data-label='{head}'>{cell}</td>" for head, cell in zip(heads[1:], cells, strict=True))
        + "</tr>"
        for name, *cells in rows
    )
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{label}'>"
        f"<table><thead><tr>{ahead}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def opening() -> str:
    """The page that is shown until the first real one is made. It reloads itself."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>tidegate</title>"
        f"<meta http-equiv='refresh' content='1'><style>{_STYLE}</style></head><body>"
        "<main><h1>tidegate</h1><p role='status'>Reading the lakes. The first time takes some seconds.</p></main>"
        "</body></html>"
    )
