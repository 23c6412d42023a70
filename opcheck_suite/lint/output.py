"""What `opcheck lint` prints."""

from __future__ import annotations

import dataclasses
import json
import textwrap

from opcheck_suite.lint.rules import RULES, Rule, get
from opcheck_suite.lint.run import Linted

FORMATS = ("text", "json", "github")


def render(linted: Linted, format: str) -> str:
    """The findings in a format."""
    return {"text": _text, "json": _json, "github": _github}[format](linted)


def _text(linted: Linted) -> str:
    lines = [f"{f.path}:{f.line}:{f.column} {f.id} {f.message}" for f in linted.findings]
    number, among = len(linted.findings), len({finding.path for finding in linted.findings})
    if not number:
        lines.append(f"no findings in {_count(linted.files, 'file')}")
    else:
        lines.append(f"{_count(number, 'finding')} in {among} of {_count(linted.files, 'file')}")
    return "\n".join(lines)


def _json(linted: Linted) -> str:
    rows = [{**dataclasses.asdict(finding), "docs": get(finding.id).docs} for finding in linted.findings]
    return json.dumps({"schema_version": 1, "files": linted.files, "findings": rows}, indent=2)


def _github(linted: Linted) -> str:
    """Annotations of a workflow: https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""
    return "\n".join(
        f"::error file={_property(f.path)},line={f.line},col={f.column},title={f.id}::{_data(f.message)}"
        for f in linted.findings
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listing() -> str:
    """The rules, one a line."""
    width = max(len(rule.id) for rule in RULES)
    return "\n".join(f"{rule.id:<{width}}  {rule.title}" for rule in RULES)


def explain(rule: Rule) -> str:
    """One rule, as ``opcheck explain`` shows it."""
    parts = [f"{rule.id}: {rule.title}"]
    for name, body in (("what", rule.what), ("why", rule.why), ("fix", rule.fix)):
        parts.append(textwrap.fill(body, 100, initial_indent=f"{name:<6}", subsequent_indent=" " * 6))
    if rule.apis:
        rows = [f"{api.path}\n    use {api.instead}" for api in rule.apis]
        parts.append("names\n" + textwrap.indent("\n".join(rows), "  "))
    parts.append(f"more  {rule.docs}")
    return "\n\n".join(parts)
