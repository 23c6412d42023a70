"""The page about strategies, made of what was measured."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import tabulate
import torch

from reference_ops.strategies.functions import STRATEGIES, TROUBLES, Trouble
from reference_ops.strategies.measuring import Row

_INTRODUCTION = """\
# Strategies against graph breaks

Six functions on which torch.compile breaks the graph, each under every strategy that torch offers. This page is written
by `python -m reference_ops.strategies`; everything in the tables is measured, here with torch {torch}. The functions
are in [`reference_ops/strategies/functions.py`](../reference_ops/strategies/functions.py). For a function of your own,
see `opcheck breaks`.

| strategy | what is done |
|---|---|
{strategies}

Each function is compiled, and called on three inputs of one shape that take different branches. In the tables

- *graphs*, *breaks* and *recompilations* are those of the three calls together;
- *equal to eager* compares each call with the plain function, not compiled;
- *kernels* are what Inductor generates or calls for all these graphs, the body of a loop once;
- *export* is non-strict `torch.export`, whose program is called on the same three inputs.
"""


_LEGEND = """\
*whole* is one graph without a break that gives what eager gives, *heard* is what it prints and logs, and - makes no
sense, for the reason below. A function that is marked with nonstrict_trace or allow_in_graph is run on fake tensors, to
see what it consists of: where it looks at data, that fails, and what is left is a break or an exception.
"""


def write(rows: dict[str, list[Row]]) -> str:
    """The page, of the rows of each function by its name."""
    strategies = "\n".join(f"| {name} | {what} |" for name, what in STRATEGIES.items())
    parts = [
        _INTRODUCTION.format(torch=torch.__version__.partition("+")[0], strategies=strategies),
        "## At a glance\n",
        _overview(rows),
        _LEGEND,
    ]
    for trouble in TROUBLES:
        found = rows[trouble.name]
        reasons = [f"- {row.strategy} makes no sense: {row.no_sense}." for row in found if row.no_sense]
        parts += [f"## {trouble.name[:1].upper()}{trouble.name[1:]}\n", _code(trouble.plain), _table(trouble, found)]
        parts += ["\n".join([*reasons, ""])] if reasons else []
        parts += [f"{trouble.verdict}\n"]
        parts += [_code(fn) for fn in (trouble.ways[name].fn for name in ("rewrite", "cond")) if fn is not None]
    return "\n".join(parts).rstrip() + "\n"


def _overview(rows: dict[str, list[Row]]) -> str:
    grid = [[name, *(verdict(row) for row in found)] for name, found in rows.items()]
    return tabulate.tabulate(grid, ["", *STRATEGIES], tablefmt="github", disable_numparse=True) + "\n"


def verdict(row: Row) -> str:
    """A word for a row: *whole*, or what is the matter."""
    if row.no_sense:
        return "-"
    if row.equal != "yes":
        return row.equal.partition(" ")[0] if row.equal.startswith("raises") else "wrong"
    said = "whole" if row.whole else f"{row.breaks} break{'' if row.breaks == 1 else 's'}"
    if row.effects and row.effects != "each call":
        said += {"never": ", never heard", "first call only": ", heard once"}.get(row.effects, ", heard in part")
    return said


def _table(trouble: Trouble, rows: list[Row]) -> str:
    heads = ["strategy", "graphs", "breaks", "recompilations", "equal to eager", "kernels", "export"]
    if trouble.effects:
        heads.insert(5, "prints and logs")
    grid = []
    for row in rows:
        if row.no_sense:
            continue
        cells: list[Any] = [row.strategy, row.graphs, row.breaks, row.recompiles, row.equal, row.kernels, row.export]
        if trouble.effects:
            cells.insert(5, row.effects)
        grid.append(cells)
    return tabulate.tabulate(grid, heads, tablefmt="github", disable_numparse=True) + "\n"


def _code(fn: Any) -> str:
    return f"```python\n{textwrap.dedent(inspect.getsource(fn)).rstrip()}\n```\n"
