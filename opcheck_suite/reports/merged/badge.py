"""A badge: how many ops are conformant. As JSON for an endpoint of shields.io, or drawn here."""

from __future__ import annotations

import html
import json

from opcheck_suite.reports import levels
from opcheck_suite.reports.merged import Merged

LABEL = "torch conformance"
_COLOURS = {"brightgreen": "#2e7d32", "orange": "#b45309", "red": "#c62828", "lightgrey": "#616161"}


def message(merged: Merged) -> tuple[str, str]:
    """What the badge says, and its colour.

    An op counts where it has its level in every environment; the level shown is ``compile``, or ``eager`` or
    ``registered`` where no op was looked at further.
    """
    if merged.problems:
        return "incomplete", "lightgrey"
    states = merged.levels
    ops = list(dict.fromkeys(row.op for row in merged.rows))
    shown = next(
        (
            level
            for level in ("compile", "eager", "registered")
            if any(s[level] in (levels.State.YES, levels.State.NO) for of in states for s in of.values())
        ),
        None,
    )
    if shown is None or not ops:
        return "nothing was run", "lightgrey"
    have = sum(all(of[op][shown] is levels.State.YES for of in states if op in of) for op in ops)
    colour = "red" if merged.bad else "brightgreen" if have == len(ops) else "orange"
    return f"{have}/{len(ops)} ops {shown}", colour


def endpoint(merged: Merged) -> str:
    """The badge for ``https://img.shields.io/endpoint?url=...``. Source: https://shields.io/badges/endpoint-badge."""
    said, colour = message(merged)
    badge = {"schemaVersion": 1, "label": LABEL, "message": said, "color": colour, "isError": colour == "red"}
    return json.dumps(badge, indent=1) + "\n"


def svg(merged: Merged) -> str:
    """The badge as a picture, which needs no other site."""
    said, colour = message(merged)
    left, right = (round(6.2 * len(t)) + 12 for t in (LABEL, said))
    label, told = html.escape(LABEL), html.escape(said)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" \
aria-label="{label}: {told}">
<title>{label}: {told}</title>
<rect width="{left + right}" height="20" rx="3" fill="#444"/>
<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{right - 3}z" fill="{_COLOURS[colour]}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,sans-serif" font-size="11">
<text x="{left / 2:g}" y="14" textLength="{left - 12}">{label}</text>
<text x="{left + right / 2:g}" y="14" textLength="{right - 12}">{told}</text>
</g>
</svg>
"""
