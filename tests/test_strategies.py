"""Every strategy against graph breaks is measured, and comes to what the page says."""

from __future__ import annotations

import pathlib

import pytest
import torch

from opcheck_suite import compiling, count_graph_breaks
from reference_ops.strategies import page
from reference_ops.strategies.functions import STRATEGIES, TROUBLES
from reference_ops.strategies.measuring import Row, table

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "compile-strategies.md"


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    compiling.prepare()
    return {trouble.name: table(trouble) for trouble in TROUBLES}


@pytest.fixture
def of(rows):
    """The rows of all functions under one strategy, those that make no sense left out."""
    return lambda strategy: {
        name: row for name, found in rows.items() for row in found if row.strategy == strategy and not row.no_sense
    }


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the page is measured with torch 2.13")
def test_the_page_is_what_is_measured(rows):
    assert page.write(rows) == PAGE.read_text()


def test_every_function_is_measured_under_every_strategy_or_says_why_not(rows):
    for trouble in TROUBLES:
        assert list(trouble.ways) == list(STRATEGIES)
        assert [row.strategy for row in rows[trouble.name]] == list(STRATEGIES)
        for row in rows[trouble.name]:
            assert bool(row.no_sense) != bool(row.equal)


def test_every_plain_function_breaks_the_graph_and_gives_what_eager_gives(of):
    found = of("plain")
    assert len(found) == len(TROUBLES) == 6
    for name, row in found.items():
        assert row.breaks >= 1, name
        assert row.equal == "yes", name


@pytest.mark.parametrize("strategy", ["rewrite", "cond", "custom op"])
def test_what_is_rewritten_or_an_operator_is_one_graph_and_can_be_exported(of, strategy):
    found = of(strategy)
    assert found
    for name, row in found.items():
        assert row.whole, (name, row)
        assert row.recompiles == 0, name
        assert row.export == "yes", name


def test_an_operator_fits_every_function(of):
    assert len(of("custom op")) == len(of("rewrite")) == len(TROUBLES)


@pytest.mark.parametrize("strategy", ["nonstrict_trace", "allow_in_graph"])
def test_a_mark_helps_where_no_data_is_looked_at(of, strategy):
    assert {name for name, row in of(strategy).items() if row.whole} == {"`print` and logging", "third-party object"}


def test_what_is_printed_is_kept_with_each_call_by_an_operator_alone(rows):
    heard = {row.strategy: row.effects for row in rows["`print` and logging"] if not row.no_sense}
    assert {name for name, when in heard.items() if when == "each call"} == {"plain", "custom op"}
    assert heard["rewrite"] == "never"
    assert heard["nonstrict_trace"] == heard["allow_in_graph"] == "first call only"
    assert all(not row.effects for name, found in rows.items() for row in found if name != "`print` and logging")


def test_marks_and_settings_do_not_stick_to_the_plain_functions(rows):
    """They were measured under every strategy, and still break."""
    assert all(count_graph_breaks(trouble.plain, *trouble.inputs[0]) >= 1 for trouble in TROUBLES)


def test_kernels_are_counted_without_being_compiled(of):
    assert all(row.kernels >= 1 for row in of("rewrite").values())
    assert of("custom op")["NumPy call"].kernels == 1


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (Row("plain", graphs=1, equal="yes"), "whole"),
        (Row("plain", graphs=2, breaks=1, equal="yes"), "1 break"),
        (Row("plain", graphs=2, breaks=2, equal="yes"), "2 breaks"),
        (Row("plain", graphs=1, equal="no: wrong in 1 of 3 calls"), "wrong"),
        (Row("plain", equal="raises RuntimeError"), "raises"),
        (Row("plain", no_sense="there is no branch"), "-"),
        (Row("plain", graphs=1, equal="yes", effects="never"), "whole, never heard"),
        (Row("plain", graphs=1, equal="yes", effects="prints each call, logs never"), "whole, heard in part"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_row_in_a_word(row, word):
    assert page.verdict(row) == word
