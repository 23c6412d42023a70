"""What torch 2.9, the oldest supported, refuses and the torch that tests run with accepts is not in the sources."""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = sorted(path for part in ("reference_ops", "examples", "tests") for path in (ROOT / part).rglob("*.py"))


def lone_tags(source: str) -> list[int]:
    """The lines in which ``torch.library.custom_op`` is given one tag instead of a sequence: torch 2.11 iterates."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        word.value.lineno
        for call in calls
        if ast.unparse(call.func).endswith("custom_op")
        for word in call.keywords
        if word.arg == "tags" and isinstance(word.value, ast.Attribute)
    ]


def test_custom_ops_have_their_tags_in_a_sequence():
    found = [f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in lone_tags(path.read_text())]
    assert found == []


def test_a_lone_tag_is_seen():
    assert lone_tags("@torch.library.custom_op('a::b', mutates_args=(),\n tags=torch.Tag.core)\ndef b(x): ...") == [2]
