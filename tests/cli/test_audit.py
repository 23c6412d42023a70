"""``opcheck audit``: the registration table."""

from __future__ import annotations

import json

from opcheck_suite import cli


def test_audit_shows_the_table_and_runs_nothing(capsys):
    assert cli.main(["audit", "suite_tests::aborts"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    header, _, first = out.splitlines()[:3]
    assert header.split() == [
        *["op", "CPU", "CUDA", "fake", "autograd", "vmap", "autocast", "tags", "registered", "at"]
    ]
    assert first.split()[:4] == ["suite_tests::aborts", "explicit", "explicit", "python"]
    assert out.rstrip().endswith("verdict  clean")


def test_audit_finds_what_is_lacking_on_a_device_that_is_not_here(capsys):
    assert cli.main(["audit", "suite_tests::single.only", "--device", "cuda", "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert ("registration.kernel", "fail") in {(r["check"], r["outcome"]) for r in data["results"]}
    assert {r["device"] for r in data["results"]} == {"cuda"}
