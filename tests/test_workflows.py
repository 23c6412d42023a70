"""The GitHub actions: every shell step is run as a runner would, with the services it asks in its place."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[1]
GITHUB = ROOT / ".github"

#: Stands for pip, which is only told what to do.
PYTHON = f"""#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then
  echo "constraint=$(cat "${{PIP_CONSTRAINT:-/dev/null}}") $*" >> "$RUNNER_TEMP/pip.log"
  if [ "$3" = freeze ]; then echo "numpy==2.0"; echo "torch==2.13.0+cpu"; fi
  exit 0
fi
exec {sys.executable} "$@"
"""

#: Stands for GitHub's own command, whose runs are in the directory RUNS.
GH = """#!/bin/sh
echo "$*" >> "$RUNNER_TEMP/gh.log"
case "$2" in
  list) [ ! -d "$RUNS" ] || echo 17 ;;
  download) [ -f "$RUNS/$3.json" ] && mkdir -p "$7" && cp "$RUNS/$3.json" "$7/matrix.json" ;;
esac
"""


OPCHECK = "import sys; from opcheck_suite.cli import main; sys.exit(main())"


@dataclasses.dataclass
class Ran:
    """What a step left behind."""

    status: int
    printed: str
    summary: str
    outputs: dict[str, str]


class Runner:
    """Runs the shell steps of an action or a job."""

    def __init__(self, temp: pathlib.Path) -> None:
        self.temp = temp
        self.outputs: dict[str, dict[str, str]] = {}
        self.environment = {"RUNS": str(temp / "no runs")}
        self.bin = temp / "bin"
        self.bin.mkdir()
        self.add("python", PYTHON)
        self.add("gh", GH)
        self.add("opcheck", f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(OPCHECK)} "$@"\n')

    def add(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def step(self, step: dict[str, Any], inputs: dict[str, str]) -> Ran:
        """Run a step, with GitHub's way to start bash."""
        files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
        for file in files.values():
            file.write_text("")
        given = {name: self.resolve(str(text), inputs) for name, text in step.get("env", {}).items()}
        environment = {**os.environ, **self.environment, **given, "RUNNER_TEMP": str(self.temp)}
        environment["PATH"] = f"{self.bin}:{environment['PATH']}"
        environment["PYTHONPATH"] = str(ROOT)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ran = subprocess.run(
            command,
            env=environment | {name: str(file) for name, file in files.items()},
            cwd=self.temp,
            capture_output=True,
            text=True,
            timeout=300,
        )
        outputs = _outputs(files["GITHUB_OUTPUT"].read_text())
        self.outputs[step.get("id", "")] = outputs
        assert not files["GITHUB_ENV"].read_text()
        return Ran(ran.returncode, ran.stdout + ran.stderr, files["GITHUB_STEP_SUMMARY"].read_text(), outputs)

    def resolve(self, text: str, inputs: dict[str, str]) -> str:
        """Put in what an expression stands for. Raises KeyError for one that a workflow may not use here."""

        def value(match: re.Match[str]) -> str:
            scope, *rest = match[1].strip().split(".")
            if scope == "inputs":
                return inputs[rest[0]]
            if scope == "steps":
                return self.outputs[rest[0]][rest[2]]
            return {"github.workflow": "ops", "github.token": "t", "github.repository": "o/r"}[match[1].strip()]

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)


def _outputs(text: str) -> dict[str, str]:
    several = dict(re.findall(r"^(\w+)<<end\n(.*?)\nend$", text, re.M | re.S))
    return several | dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def action(name: str) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The shell steps of an action by name, and the defaults of its inputs."""
    read = yaml.safe_load((GITHUB / "actions" / name / "action.yml").read_text())
    steps = {step["name"]: step for step in read["runs"]["steps"] if "run" in step}
    return steps, {key: str(given.get("default", "")) for key, given in read["inputs"].items()}


def test_all_shell_steps_are_run_here():
    job = yaml.safe_load((GITHUB / "workflows" / "conformance.yml").read_text())["jobs"]
    steps = [s for each in job.values() for s in each["steps"] if "run" in s]
    assert [*action("check")[0], *action("matrix")[0], *(s["name"] for s in steps)] == [
        "Install torch",
        "Install the library and opcheck_suite",
        "Check",
        "Install opcheck_suite",
        "Merge",
        "Fetch the matrix of the base branch",
        "Judge",
        "Name what is expected",
    ]


def test_torch_is_installed_as_asked(runner):
    steps, inputs = action("check")
    inputs |= {"torch": "2.13.0", "torch-index-url": "https://torch.example/cpu"}
    assert runner.step(steps["Install torch"], inputs).status == 0
    log = (runner.temp / "pip.log").read_text()
    assert log == "constraint= -m pip install torch==2.13.0 --index-url https://torch.example/cpu\n"


def test_nothing_that_is_installed_later_brings_another_torch(runner):
    steps, inputs = action("check")
    inputs |= {"install": "python -m pip install .\npython -m pip install numpy", "suite": "./suite"}
    assert runner.step(steps["Install the library and opcheck_suite"], inputs).status == 0
    assert (runner.temp / "pip.log").read_text().splitlines()[1:] == [
        f"constraint=torch==2.13.0+cpu -m pip install {what}" for what in (".", "numpy", "./suite")
    ]


def test_the_install_of_a_library_that_fails_fails_the_step(runner):
    steps, inputs = action("check")
    ran = runner.step(steps["Install the library and opcheck_suite"], inputs | {"install": "false\ntrue"})
    assert ran.status == 1


SPECS = {"clean": "tests.fixtures.clean_specs", "mixed": "tests.fixtures.mixed_specs"}


def checked(runner: Runner, specs: str, **given: str) -> Ran:
    steps, inputs = action("check")
    arguments = "--checks\nvalues.runs\n\n--checks\nvalues.reference\n"
    return runner.step(steps["Check"], inputs | {"specs": specs, "tier": "quick", "arguments": arguments} | given)


def test_bad_results_are_annotated_and_left_to_the_matrix(runner):
    ran = checked(runner, SPECS["mixed"])
    assert ran.status == 0
    assert "::error" in ran.printed
    assert json.loads((runner.temp / "report.json").read_text())["complete"]


@pytest.mark.parametrize("given", [{"specs": "no.such.specs"}, {"device": "cuda"}, {"tier": "swift"}])
def test_what_could_not_be_checked_fails_the_job(runner, given, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = checked(runner, **{"specs": SPECS["clean"]} | given)
    assert ran.status == 2
    assert not (runner.temp / "report.json").exists()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports of a clean run and of one with bad results, of one environment."""
    made = {}
    for name, specs in SPECS.items():
        runner = Runner(tmp_path_factory.mktemp(name))
        assert checked(runner, specs, name=name).status == 0
        made[name] = runner.temp / f"{name}.json"
    return made


def matrix(runner: Runner, report: pathlib.Path | None, **given: str) -> tuple[list[int], str, str]:
    """The statuses of the steps, what they printed, and the summary."""
    steps, inputs = action("matrix")
    inputs |= {name.replace("_", "-"): text for name, text in given.items()}
    (runner.temp / "reports").mkdir()
    if report is not None:
        shutil.copy(report, runner.temp / "reports" / "torch-a.json")
    assert runner.step(steps["Install opcheck_suite"], inputs).status == 0
    wanted = ["Merge", *["Fetch the matrix of the base branch"] * bool(inputs["base-branch"]), "Judge"]
    statuses, printed, summary = [], "", ""
    for name in wanted:
        ran = runner.step(steps[name], inputs)
        statuses.append(ran.status)
        printed, summary = printed + ran.printed, summary + ran.summary
        if ran.status:
            break
    return statuses, printed, summary


def test_a_clean_run_passes_and_has_a_matrix(runner, reports):
    statuses, _, summary = matrix(runner, reports["clean"], expect="torch-a\n")
    assert statuses == [0, 0]
    assert "|" in summary
    assert {p.name for p in (runner.temp / "matrix").iterdir()} == {
        "matrix.json",
        "matrix.md",
        "matrix.html",
        "badge.svg",
    }


def test_bad_results_fail_when_all_are_shown(runner, reports):
    assert matrix(runner, reports["mixed"])[0] == [0, 1]


def test_a_job_that_left_no_report_fails(runner, reports):
    statuses, printed, _ = matrix(runner, reports["clean"], expect="torch-a\ntorch-b\n", fail_on="new")
    assert statuses == [0, 1]
    assert "torch-b" in printed


def test_no_report_at_all_fails(runner):
    statuses, printed, _ = matrix(runner, None)
    assert statuses == [1]
    assert "::error title=opcheck::no job left a report" in printed


def base(runner: Runner, report: pathlib.Path) -> None:
    """Make a matrix of a report that of the base branch."""
    runs = runner.temp / "runs"
    runs.mkdir()
    command = [sys.executable, "-c", OPCHECK, "merge", str(report), "-o", str(runs / "17.json")]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode in (0, 1)
    runner.environment["RUNS"] = str(runs)


def test_only_what_is_new_fails_where_that_is_asked(runner, reports):
    base(runner, reports["mixed"])
    statuses, _, summary = matrix(runner, reports["mixed"], fail_on="new", base_branch="main")
    assert statuses == [0, 0, 0]
    assert "What changed: no difference" in summary
    assert "--branch main" in (runner.temp / "gh.log").read_text()


def test_what_is_new_fails(runner, reports):
    base(runner, reports["clean"])
    assert matrix(runner, reports["mixed"], fail_on="new", base_branch="main")[0] == [0, 0, 1]


def test_a_base_branch_without_a_matrix_is_told(runner, reports):
    statuses, printed, _ = matrix(runner, reports["mixed"], fail_on="new", base_branch="main")
    assert statuses == [0, 0, 0]
    assert "::notice title=opcheck::branch main has no matrix yet" in printed


def test_a_wrong_word_for_what_fails_is_refused(runner, reports):
    assert matrix(runner, reports["clean"], fail_on="never")[0] == [0, 2]


def test_every_environment_is_expected(runner):
    job = yaml.safe_load((GITHUB / "workflows" / "conformance.yml").read_text())["jobs"]["matrix"]
    step = next(s for s in job["steps"] if s.get("id") == "expected")
    devices = '[{"device": "cpu", "runner": "a"}, {"device": "cuda", "runner": "b"}]'
    ran = runner.step(step, {"torch": '["2.13.0"]', "python": '["3.11", "3.12"]', "devices": devices})
    assert ran.outputs["names"].splitlines() == [
        f"torch-2.13.0-python-{python}-{device}" for python in ("3.11", "3.12") for device in ("cpu", "cuda")
    ]
    name = yaml.safe_load((GITHUB / "workflows" / "conformance.yml").read_text())["jobs"]["check"]["steps"][-1]["with"]
    assert name["name"] == "torch-${{ matrix.torch }}-python-${{ matrix.python }}-${{ matrix.on.device }}"


def test_inputs_that_a_workflow_passes_on_exist():
    jobs = yaml.safe_load((GITHUB / "workflows" / "conformance.yml").read_text())["jobs"]
    for job in jobs.values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("$/"):
                _, inputs = action(pathlib.PurePath(step["uses"]).name)
                assert set(step["with"]) <= set(inputs)
