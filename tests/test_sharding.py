"""Shards of a run: together they are the run."""

from __future__ import annotations

import json as plain

import pytest

from opcheck_suite import sharding
from opcheck_suite.options import RunOptions
from opcheck_suite.registry import UsageError

OPS = [f"a::op{n}" for n in range(10)]


@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("seconds", [{}, {"a::op3": 100.0, "a::op4": 1.0}], ids=["none", "some"])
def test_every_op_belongs_to_one_shard(count, seconds):
    parts = [sharding.choose(OPS, f"{i}/{count}", seconds) for i in range(1, count + 1)]
    assert sorted(name for part in parts for name in part) == sorted(OPS)
    assert all(parts)
    assert parts[0] == sharding.choose(reversed(OPS), f"1/{count}", seconds)


def test_shards_are_balanced_by_seconds():
    seconds = {name: float(n + 1) for n, name in enumerate(OPS)}
    loads = [sum(seconds[name] for name in sharding.choose(OPS, f"{i}/3", seconds)) for i in (1, 2, 3)]
    assert max(loads) - min(loads) <= 1
    long = {**dict.fromkeys(OPS, 1.0), "a::op7": 9.0}
    assert sharding.choose(OPS, "1/2", long) == {"a::op7"}


def test_an_empty_shard_is_not_a_clean_run():
    with pytest.raises(UsageError, match="shard 4/5 is empty: there are only 3 ops"):
        sharding.choose(OPS[:3], "4/5", {})


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2", "1/2/3", " 1/2"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(UsageError, match=r"must be i/n with i from 1 to n"):
        RunOptions(shard=text).validated()


def test_durations_need_shards_and_a_report(scratch):
    with pytest.raises(UsageError, match="no --shard is given"):
        RunOptions(durations="r.json").validated()
    with pytest.raises(UsageError, match=r"'r\.json' cannot be read: No such file"):
        sharding.durations("r.json")
    for text in ("", "[]", '{"results": [{}]}', '{"results": 3}'):
        (scratch / "r.json").write_text(text)
        with pytest.raises(UsageError, match="is no report"):
            sharding.durations("r.json")
    rows = [{"op": "a::b", "seconds": 1}, {"op": "a::b", "seconds": 0.5}, {"op": "a::c", "seconds": 0}]
    (scratch / "r.json").write_text(plain.dumps({"results": rows}))
    assert sharding.durations("r.json") == {"a::b": 1.5, "a::c": 0.0}
