"""Rules of Prometheus from the one list of alerts.

In:  tidegate.metrics.rules.
Out: docker/monitoring/alerts.yaml; with --check only whether it is as it should be.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidegate.config import Alert
from tidegate.metrics.hours import ALL, table_shown
from tidegate.metrics.rules import RULES, AlertRule, Measure, Sign, Term

PATH = Path(__file__).resolve().parents[1] / "docker/monitoring/alerts.yaml"
# As table_shown: a person reads no "*".
_TABLE = f"{{{{ if eq $labels.table `{ALL}` }}}}{table_shown(ALL)}{{{{ else }}}}{{{{ $labels.table }}}}{{{{ end }}}}"
HEAD = """\
# Alerts for Prometheus over the figures of `tidegate metrics` (docs/metrics.md). Copy the file, and change the bounds
# to what you promise your readers. `make docs` writes it from include/tidegate/metrics/rules.py.
groups:
  - name: tidegate
    rules:
      - alert: TidegateNoFigures
        expr: 'absent(tidegate_up) or time() - tidegate_look_timestamp_seconds > 120'
        for: 2m
        labels: {severity: critical}
        annotations:
          summary: "{{ or $labels.pipeline `tidegate metrics` }}: no figures for two minutes"
          description: "Is `tidegate metrics` running, and does it answer?"
"""


def text() -> str:
    return HEAD + "".join(_entry(alert, rule) for alert, rule in RULES.items())


def _entry(alert: Alert, rule: AlertRule) -> str:
    value = "{{ $value | humanizeDuration }}" if rule.is_of_time else "{{ $value }}"
    value = "{{ $value | humanize1024 }}B" if rule.is_of_bytes else value
    runbook = f'          runbook: "docs/runbooks/{rule.runbook}.md"\n' if rule.runbook else ""
    labels = {name: f"{{{{ $labels.{name} }}}}" for name in ("source", "cause", "disk", "table", "pipeline")}
    summary = rule.words.format(value=value, **labels | {"table": _TABLE})
    described = rule.do.format(**labels)
    if rule.named_by:  # only Prometheus itself can ask for other series
        described += (
            f" It waits for:{{{{ range printf `{rule.named_by}{{pipeline=%q}}` $labels.pipeline | query }}}}"
            " {{ .Labels.table }}{{ end }}"
        )
    return (
        f"      - alert: Tidegate{''.join(word.capitalize() for word in alert.split('_'))}\n"
        f"        expr: '{' or '.join(_expression(term, rule.bound) for term in rule.terms)}'\n"
        f"        for: {_duration(rule.for_seconds)}\n"
        f"        labels: {{severity: {rule.severity}}}\n"
        "        annotations:\n"
        f'          summary: "{labels["pipeline"]}: {summary}"\n'
        f'          description: "{described}"\n{runbook}'
    )


def _expression(term: Term, bound: float) -> str:
    selected = ", ".join(f'{name}="{value}"' for name, value in (term.labels or {}).items())
    left = term.metric + (f"{{{selected}}}" if selected else "")
    left = {Measure.VALUE: left, Measure.AGE: f"time() - {left}", Measure.ABSOLUTE: f"abs({left})"}[term.form]
    right = f"{bound if term.bound is None else term.bound:.12g}" + (f" * {term.times}" if term.times else "")
    gate = f"{term.only_if} {Sign.IS} 1 and " if term.only_if else ""
    return f"{gate}{left} {term.sign} {right}"


def _duration(seconds: int) -> str:
    return f"{seconds // 3600}h" if seconds and seconds % 3600 == 0 else f"{seconds // 60}m"


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        return int(PATH.read_text() != text())
    PATH.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
