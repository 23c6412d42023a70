"""One line for everything that can be mistyped, of any verb."""

# ruff: noqa: E501 - goldens are as long as what they hold

from __future__ import annotations

import expecttest
import torch


def lines(*found: str) -> str:
    return "\n".join(found)


def test_words_that_are_not_there(misuse):
    found = [
        misuse("rum", "x"),
        misuse("run"),
        misuse("run", "x", "--chekcs", "fake"),
        misuse("run", "x", "y"),
        misuse("run", "x", "--strict=yes"),
        misuse("audit"),
        misuse("explain"),
        misuse("--verson"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown verb 'rum'; did you mean 'run'?
opcheck: the following arguments are required: target
opcheck: unknown option '--chekcs'; did you mean '--checks'?
opcheck: unexpected argument 'y'
opcheck: argument --strict: ignored explicit argument 'yes'
opcheck: the following arguments are required: target
opcheck: the following arguments are required: check
opcheck: unknown option '--verson'; did you mean '--version'?""",
    )


def test_values_that_are_not_there(misuse):
    found = [
        misuse("run", "x", "--tier", "quik"),
        misuse("run", "x", "--format", "jsno"),
        misuse("run", "x", "--isolate", "nevr"),
        misuse("run", "x", "--require", "nativ"),
        misuse("run", "x", "--jobs", "-1"),
        misuse("run", "x", "-j", "0"),
        misuse("run", "x", "-j", "two"),
        misuse("run", "x", "--timeout", "soon"),
        misuse("run", "x", "--timeout", "-1"),
        misuse("run", "x", "--memory", "-0.5"),
        misuse("run", "x", "--seed", "1.5"),
        misuse("run", "x", "--seed"),
        misuse("audit", "x", "--format", "jsno"),
        misuse("list", "--format", "json"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown tier 'quik'; did you mean 'quick'?
opcheck: unknown format 'jsno'; did you mean 'json'?
opcheck: unknown isolate 'nevr'; did you mean 'never'?
opcheck: unknown require 'nativ'; did you mean 'native'?
opcheck: jobs must be at least 1, got -1
opcheck: jobs must be at least 1, got 0
opcheck: argument -j/--jobs: invalid int value: 'two'
opcheck: argument --timeout: invalid float value: 'soon'
opcheck: timeout and memory must not be negative; 0 means no limit
opcheck: timeout and memory must not be negative; 0 means no limit
opcheck: argument --seed: invalid int value: '1.5'
opcheck: argument --seed: expected one argument
opcheck: unknown format 'jsno'; did you mean 'json'?
opcheck: unknown format 'json'; it is one of text, markdown""",
    )


def test_checks_that_are_not_there(misuse):
    found = [
        misuse("explain", "fake.stride"),
        misuse("explain", "strides"),
        misuse("explain", "fake"),
        misuse("list", "fke"),
        misuse("run", "suite_tests", "--checks", "fake.shap"),
        misuse("run", "suite_tests", "--checks", "!fak"),
        misuse("run", "suite_tests", "--checks", "fake", "--checks", "!fake"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown check 'fake.stride'; did you mean 'fake.strides'?
opcheck: unknown check 'strides'; did you mean 'fake.strides'?
opcheck: unknown check 'fake'; did you mean 'fake.runs'?
opcheck: unknown check 'fke'; did you mean 'fake'?
opcheck: unknown check 'fake.shap'; did you mean 'fake.shape'?
opcheck: unknown check 'fak'; did you mean 'fake'?
opcheck: no check is left to run: --checks takes them all away""",
    )


def test_modules_and_files_that_are_not_there(misuse, scratch, specs):
    specs("suite_near_specs.py", "SPECS = []")
    (scratch / "folder.py").mkdir()
    found = [
        misuse("run", "suite_near_spec"),
        misuse("run", "suite_near_specs.inner"),
        misuse("run", "opcheck_suite.reprots"),
        misuse("run", "suite_near_spec.py"),
        misuse("run", "no/such/specs.py"),
        misuse("run", "./folder"),
        misuse("run", "folder.py"),
        misuse("run", "suite_tests::duoble"),
        misuse("run", "suite_test*"[:-1] + "z::*"),
        misuse("run", ""),
        misuse("audit", "suite_near_spec"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: there is no module or op namespace 'suite_near_spec'; did you mean 'suite_near_specs'?
opcheck: there is no module or op namespace 'suite_near_specs.inner'; if a module registers the ops of that namespace, name the module
opcheck: there is no module or op namespace 'opcheck_suite.reprots'; did you mean 'opcheck_suite.reports'?
opcheck: there is no file 'suite_near_spec.py'; did you mean 'suite_near_specs.py'?
opcheck: there is no file 'no/such/specs.py'
opcheck: there is no file 'folder'; did you mean 'folder.py'?
opcheck: folder.py cannot be read: Is a directory
opcheck: no registered op matches 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: no registered op matches 'suite_testz::*'; did you mean 'suite_tests'?
opcheck: the target is empty; give a module, a file, or a namespace of ops
opcheck: there is no module or op namespace 'suite_near_spec'; did you mean 'suite_near_specs'?""",
    )


def test_modules_that_cannot_be_imported(misuse, scratch):
    (scratch / "syntax.py").write_text("def f(:\n")
    (scratch / "raises.py").write_text("raise RuntimeError('first\\nsecond')\n")
    (scratch / "exits.py").write_text("raise SystemExit(0)\n")
    (scratch / "needs.py").write_text("import suite_is_not_installed\n")
    (scratch / "bytes.py").write_bytes(b"x = '\xff\xfe'\n")
    (scratch / "null.py").write_bytes(b"x = 1\0\n")
    found = []
    for stem in ("syntax", "raises", "exits", "needs", "bytes", "null"):
        found += [misuse("run", f"{stem}.py"), misuse("run", stem)]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: syntax.py cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1)
opcheck: syntax cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1)
opcheck: raises.py cannot be imported: RuntimeError: first
opcheck: raises cannot be imported: RuntimeError: first
opcheck: exits.py cannot be imported: SystemExit: 0
opcheck: exits cannot be imported: SystemExit: 0
opcheck: needs.py cannot be imported: ModuleNotFoundError: No module named 'suite_is_not_installed'
opcheck: needs cannot be imported: it needs 'suite_is_not_installed', which is not installed
opcheck: bytes.py cannot be imported: SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte (bytes.py, line 1)
opcheck: bytes cannot be imported: SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte (bytes.py, line 1)
opcheck: null.py cannot be imported: SyntaxError: source code string cannot contain null bytes
opcheck: null cannot be imported: SyntaxError: source code string cannot contain null bytes""",
    )


def test_modules_that_hold_no_specs(misuse, scratch, specs):
    (scratch / "none.py").write_text("x = 1\n")
    (scratch / "near.py").write_text("specs = []\n")
    found = [
        misuse("run", "none.py"),
        misuse("run", "near.py"),
        misuse("run", specs("empty.py", "SPECS = []")),
        misuse("run", specs("strings.py", "SPECS = ['aten::relu']")),
        misuse("run", specs("single.py", "SPECS = OpSpec('aten::relu')")),
        misuse("run", specs("nothing.py", "SPECS = None")),
        misuse("run", specs("raising.py", "def SPECS():\n    raise KeyError('gone')")),
        misuse("run", specs("lazy.py", "def SPECS():\n    yield 1 / 0")),
        misuse("audit", "none.py"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: none.py has no SPECS and registers no ops
opcheck: near.py has no SPECS and registers no ops; it has specs
opcheck: SPECS of empty.py is empty
opcheck: SPECS of strings.py must hold OpSpec objects, found str
opcheck: SPECS of single.py must be a list of OpSpec objects, found OpSpec
opcheck: SPECS of nothing.py must be a list of OpSpec objects, found NoneType
opcheck: SPECS of raising.py raised KeyError: 'gone'
opcheck: SPECS of lazy.py raised ZeroDivisionError: division by zero
opcheck: none.py has no SPECS and registers no ops""",
    )


def test_ops_that_are_not_there(misuse, specs):
    found = [
        misuse("run", specs("typo.py", "SPECS = [OpSpec('suite_tests::duoble')]")),
        misuse("run", specs("overload.py", "SPECS = [OpSpec('suite_tests::several.Tenosr')]")),
        misuse("run", specs("packet.py", "SPECS = [OpSpec(torch.ops.suite_tests.several)]")),
        misuse("run", specs("number.py", "SPECS = [OpSpec(3)]")),
        misuse("run", specs("twice.py", "SPECS = [OpSpec('suite_tests::double')] * 2")),
        misuse("run", "suite_tests", "--ops", "suite_tests::duoble"),
        misuse("run", "suite_tests", "--ops", "nothing*"),
        misuse("audit", "suite_tests", "--ops", "suite_tests::duoble"),
        misuse("run", specs("check.py", "SPECS = [OpSpec('aten::relu', expected_failures={'fake.stride': ''})]")),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: there is no op 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: suite_tests::several has no overload 'Tenosr'; did you mean 'Tensor'?
opcheck: suite_tests::several has 2 overloads; name one of suite_tests::several.Tensor, suite_tests::several.Scalar
opcheck: an op must be a name such as 'ns::name', or an operator; got int
opcheck: suite_tests::double has two specs
opcheck: no op in the selection matches 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: no op in the selection matches 'nothing*'
opcheck: no op in the selection matches 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: aten::relu: expected_failures names an unknown check 'fake.stride'; did you mean 'fake.strides'?""",
    )


SAMPLES = {
    "many": "(x, x, x)",
    "unknown": "((x, x), {'m': 2})",
    "lacking": "(x,)",
    "twice": "((x, x), {'y': x})",
    "kind": "'x'",
}


def test_samples_in_lists_that_do_not_fit(misuse, specs):
    found = [
        misuse("run", specs(f"{name}.py", f"SPECS = [OpSpec('suite_tests::written', samples=[{sample}])]"))
        for name, sample in SAMPLES.items()
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: suite_tests::written: sample 0 has 3 positional arguments, the schema takes 2: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 has an unknown argument 'm': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 lacks argument 'y': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 gives argument 'y' twice: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 must be a Sample, (args, kwargs) or a tuple of args; got str""",
    )


def test_samples_of_functions_that_do_not_fit(misuse, specs):
    found = [
        misuse(
            "run",
            specs(
                f"{name}.py",
                f"SPECS = [OpSpec('suite_tests::written', samples=lambda device, dtype: [(x, x), {sample}])]",
            ),
        )
        for name, sample in SAMPLES.items()
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: suite_tests::written: sample 1 has 3 positional arguments, the schema takes 2: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 has an unknown argument 'm': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 lacks argument 'y': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 gives argument 'y' twice: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 must be a Sample, (args, kwargs) or a tuple of args; got str""",
    )


def test_devices_that_are_not_there(misuse):
    found = [
        misuse("run", "suite_tests", "--device", "cdua"),
        misuse("run", "suite_tests", "--device", ""),
        misuse("run", "suite_tests", "--device", "cpu,gpuu"),
        misuse("run", "suite_tests", "--device", "meta"),
        misuse("audit", "suite_tests", "--device", "cdua"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown device 'cdua'; did you mean 'cuda'?
opcheck: --device is empty; give cpu, cuda, or auto
opcheck: unknown device 'gpuu'; did you mean 'xpu'?
opcheck: device 'meta' holds no data, so that nothing can be checked on it; fake.* checks need no device
opcheck: unknown device 'cdua'; did you mean 'cuda'?""",
    )


def test_a_device_that_this_machine_lacks_is_no_green_run_of_skips(misuse, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    found = [misuse("run", "suite_tests", "--device", "cuda")]
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    found += [misuse("run", "suite_tests", "--device", "cuda:0"), misuse("run", "suite_tests", "--device", "cpu,xpu")]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: device 'cuda' is not available on this machine: torch TORCH is built without it; use --device auto to take what is there
opcheck: device 'cuda:0' is not available on this machine: no such device was found; use --device auto to take what is there
opcheck: device 'xpu' is not available on this machine: no such device was found; use --device auto to take what is there""",
    )


def test_reports_that_cannot_be_written(misuse, scratch):
    (scratch / "file").touch()
    (scratch / "folder.md").mkdir()
    found = [
        misuse("run", "suite_tests", "--report", "report.htlm"),
        misuse("run", "suite_tests", "--report", "report.jsno"),
        misuse("run", "suite_tests", "--report", "report"),
        misuse("run", "suite_tests", "--report", "file/report.json"),
        misuse("run", "suite_tests", "--report", "folder.md"),
        misuse("audit", "suite_tests", "--report", "report.pdf"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: 'report.htlm': reports are written as .json, .md, .txt, .xml, .html; did you mean '.html'?
opcheck: 'report.jsno': reports are written as .json, .md, .txt, .xml, .html; did you mean '.json'?
opcheck: 'report': reports are written as .json, .md, .txt, .xml, .html
opcheck: 'file/report.json' cannot be written: 'file' is not a folder
opcheck: 'folder.md' cannot be written: it is a folder
opcheck: 'report.pdf': reports are written as .json, .md, .txt, .xml, .html; did you mean '.md'?""",
    )
