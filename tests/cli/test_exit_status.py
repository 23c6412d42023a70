"""Every exit status in the README's table."""

from __future__ import annotations

import os
import pathlib
import signal

import pytest

from opcheck_suite import cli, compiling
from opcheck_suite.reports import json
from tests.reports.merged.made import one, report

ROOT = pathlib.Path(__file__).parent.parent.parent

FUNCTIONS = """
import numpy as np
import torch

x = torch.ones(3)
def whole(x): return x.sin() + 1
def breaking(x): return torch.from_numpy(np.interp(x.numpy(), [0.0, 1.0], [0.0, 1.0])) + 1
def raising(x): raise ValueError("by itself")
"""

#: Verb -> status -> commands that end with it, each run in a folder with the files of `folder`.
COMMANDS = {
    "run": {
        0: ["run CLEAN --checks values.runs"],
        1: ["run MIXED --checks values.reference", "run CLEAN --checks values.runs --known stale.toml"],
        2: ["run nowhere.specs", "run CLEAN --checks values.rnus", "run CLEAN --device cdua", "run CLEAN --tier fast"],
    },
    "audit": {
        0: ["audit suite_tests::aborts"],
        1: ["audit suite_tests::single.only --device cuda"],
        2: ["audit", "audit nowhere_at_all", "audit suite_tests --ops nothing*"],
    },
    "merge": {
        0: ["merge good.json"],
        1: ["merge bad.json", "merge good.json --expect absent", "merge half-run.json", "merge shard.json"],
        2: ["merge good.json bad.json", "merge truncated.json", "merge nowhere.json", "merge good.json -o m.pdf"],
    },
    "diff": {
        0: ["diff good.json good.json", "diff bad.json good.json", "diff bad.json bad.json"],
        1: ["diff good.json bad.json", "diff good.json half-run.json", "diff good.json cuda.json"],
        2: ["diff good.json", "diff good.json truncated.json"],
    },
    "breaks": {
        0: ["breaks functions.py:whole --args x"],
        1: ["breaks functions.py:breaking --args x"],
        2: ["breaks functions.py:raising --args x", "breaks functions.py:wohle --args x"],
    },
    "lint": {0: ["lint functions.py"], 1: ["lint old.py"], 2: ["lint nowhere.py", "lint functions.py --format pdf"]},
    "import-failures": {
        0: ["import-failures failures.json", "import-failures failures.json -o known.toml"],
        2: ["import-failures good.json", "import-failures truncated.json", "import-failures nowhere.json"],
    },
    "list": {0: ["list", "list fake"], 2: ["list fkae", "list --format pdf"]},
    "explain": {0: ["explain fake.strides", "explain lint.impl_abstract"], 2: ["explain fake.stride", "explain"]},
}

#: Verb -> what it calls, which a test lets fail as only a fault of ours could.
INSIDE = {
    "run": "opcheck_suite.engine.plan",
    "audit": "opcheck_suite.audit.run",
    "merge": "opcheck_suite.reports.merged.merge.merge",
    "diff": "opcheck_suite.reports.merged.diff.diff",
    "breaks": "opcheck_suite.breaks.examine",
    "lint": "opcheck_suite.lint.command.run",
    "import-failures": "opcheck_suite.knownedit.imported",
    "list": "opcheck_suite.registry.select",
    "explain": "opcheck_suite.registry.get",
}


@pytest.fixture
def folder(scratch, fixtures):
    """Files for commands; and how to run one there."""
    reports = {
        "good": report(one()),
        "bad": report(one("fail", "wrong")),
        "half-run": report(one(), stopped="interrupted"),
        "shard": report(one(), options={"shard": "1/2"}),
        "cuda": report(one(device="cuda")),
    }
    for name, made in reports.items():
        (scratch / f"{name}.json").write_text(json.render(made))
    (scratch / "truncated.json").write_text(json.render(report(one()))[:100])
    (scratch / "functions.py").write_text(FUNCTIONS)
    (scratch / "old.py").write_text("import torch\nimpl = torch.library.impl_abstract\n")
    test = '{"T.test_schema__test_a": {"comment": "", "status": "xfail"}}'
    (scratch / "failures.json").write_text(f'{{"_version": 1, "data": {{"my::op": {test}}}}}')
    entry = '[[known]]\nop = "suite_clean::doubel"\ncheck = "values.runs"\ncategory = "op-bug"\nreason = "r"\n'
    (scratch / "stale.toml").write_text(entry)
    compiling.prepare()  # parts of torch use what others deprecate when they are imported

    def run(command: str) -> int:
        names = {"CLEAN": str(fixtures / "clean_specs.py"), "MIXED": str(fixtures / "mixed_specs.py")}
        return cli.main([names.get(word, word) for word in command.split()])

    return run


@pytest.mark.parametrize(
    ("command", "status"),
    [(command, status) for of in COMMANDS.values() for status, commands in of.items() for command in commands],
)
def test_a_command_ends_with_its_status(folder, capsys, command, status):
    assert folder(command) == status
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    if status == 2:
        assert (out, err.count("\n"), err.startswith("opcheck: ")) == ("", 1, True)


@pytest.mark.parametrize("verb", INSIDE)
def test_a_fault_of_ours_is_three(folder, monkeypatch, capsys, verb):
    def broken(*args, **options):
        raise LookupError("a fault of ours")

    monkeypatch.setattr(INSIDE[verb], broken)
    assert folder(COMMANDS[verb][0][0]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("opcheck: the harness failed; this says nothing of the ops\nTraceback")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_interrupted_or_terminated(folder, monkeypatch, capsys, number, status):
    def interrupted(*args):
        os.kill(os.getpid(), number)
        yield from ()

    monkeypatch.setattr("opcheck_suite.engine.Runner.run", interrupted)
    assert folder("run CLEAN --checks values.runs --report r.json") == status
    assert "wrote r.json: incomplete" in capsys.readouterr().err
    assert json.parse(pathlib.Path("r.json").read_text(), incomplete=True).stopped


def test_the_table_in_the_readme_is_what_is_tested():
    table = (ROOT / "README.md").read_text().partition("<!-- exit status")[2].split("\n\n")[1].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    said = {}
    for verbs, *cells in rows[2:]:
        for verb in verbs.replace("`", "").split(", "):
            said[verb] = {n for n, cell in enumerate(cells[:4]) if cell}
            assert bool(cells[4]) is (verb == "run")
    assert said == {verb: {*of, 3} for verb, of in COMMANDS.items()}
    assert said.keys() == INSIDE.keys()
    assert list(said) == sorted(said, key=list(COMMANDS).index)
