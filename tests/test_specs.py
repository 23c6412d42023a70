"""Loading specs, and what users may write as samples."""

from __future__ import annotations

import sys

import pytest
import torch
from hypothesis import strategies as st

from opcheck_suite import OpSpec, Sample, ops, specs
from opcheck_suite.registry import UsageError
from tests.fixtures import harness_ops

DOUBLE = ops.info("suite_tests::double")
WRITTEN = ops.info("suite_tests::written")
SCALE = ops.info("suite_tests::scale")


def made(given, *, info=DOUBLE, device="cpu", dtype=None) -> list[Sample]:
    return specs.samples(OpSpec(info.name, samples=given), device=device, dtype=dtype, info=info)


# -- samples

X = torch.ones(2)


@pytest.mark.parametrize(
    "item",
    [Sample(args=(X,)), ((X,), {}), ([X], {}), (X,), [X], X, Sample(args=[X])],
    ids=["Sample", "pair", "pair with a list", "tuple", "list", "tensor", "Sample of a list"],
)
def test_every_way_to_write_a_sample_is_one_call(item):
    (sample,) = made([item])
    assert sample.args == (X,)
    assert sample.kwargs == {}
    assert sample.name == "sample 0"


def test_a_pair_holds_keyword_arguments():
    (sample,) = made([((X,), {"factor": 2.0})], info=SCALE)
    assert (sample.args, sample.kwargs) == ((X,), {"factor": 2.0})


def test_two_tensors_are_two_arguments_and_not_a_pair():
    (sample,) = made([(X, X)], info=WRITTEN)
    assert sample.args == (X, X)


def test_what_is_no_sample_is_refused():
    with pytest.raises(UsageError, match=r"suite_tests::double: sample 0 must be a Sample, .* got str"):
        made(["x"])


def test_samples_are_named_and_names_are_unique():
    given = [Sample((X,), name="a"), Sample((X,)), Sample((X,), name="a"), Sample((X,), name="a")]
    assert [s.name for s in made(given)] == ["a", "sample 1", "a (2)", "a (3)"]


def test_a_function_is_asked_for_the_device_and_dtype():
    asked = []

    def samples(device, dtype):
        asked.append((device, dtype))
        yield (torch.ones(2, dtype=dtype),)

    (sample,) = made(samples, dtype=torch.float64)
    assert asked == [("cpu", torch.float64)]
    assert sample.args[0].dtype == torch.float64


def test_a_strategy_is_drawn_from_and_gives_the_same_each_time():
    strategy = st.builds(lambda n: (torch.full((n,), float(n)),), st.integers(1, 50))
    first, second = made(strategy), made(strategy)
    assert 1 < len(first) <= 25
    assert [s.args[0].tolist() for s in first] == [s.args[0].tolist() for s in second]


def test_a_function_that_raises_is_the_spec_s_fault():
    with pytest.raises(specs.SpecError, match=r"samples\('cpu', None\) raised ZeroDivisionError: division by zero"):
        made(lambda device, dtype: 1 / 0)


def test_a_generator_that_raises_half_way_is_the_spec_s_fault():
    def samples(device, dtype):
        yield (X,)
        raise KeyError("half")

    with pytest.raises(specs.SpecError, match="KeyError"):
        made(samples)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((X, X, 1), "sample 0 has 3 positional arguments, the schema takes 2: suite_tests::written"),
        ((X,), "sample 0 lacks argument 'y'"),
        (((X, X), {"m": 1}), "sample 0 has an unknown argument 'm'"),
        (((X, X), {"nn": 1}), "unknown argument 'nn'; did you mean 'n'"),
        (((X, X), {"y": X}), "sample 0 gives argument 'y' twice"),
        (((), {"x": X}), "sample 0 lacks argument 'y'"),
    ],
)
def test_a_sample_that_does_not_fit_the_schema_is_refused(given, told):
    with pytest.raises(UsageError, match=told):
        made([given], info=WRITTEN)
    with pytest.raises(UsageError, match=told):
        specs.entries([OpSpec("suite_tests::written", samples=[given])])


def test_binding_leaves_defaults_out():
    assert specs.bind(WRITTEN, Sample((X, X))) == {"x": X, "y": X}
    assert specs.bind(WRITTEN, Sample((X,), {"n": 2, "y": X})) == {"x": X, "n": 2, "y": X}


# -- entries


def test_entries_are_known_by_the_op_s_full_name():
    found = specs.entries([OpSpec(torch.ops.suite_tests.single), OpSpec(harness_ops.trained)])
    assert [e.name for e in found] == ["suite_tests::single.only", "suite_tests::trained"]


def test_two_specs_of_one_op_are_refused():
    with pytest.raises(UsageError, match="suite_tests::double has two specs"):
        specs.entries([OpSpec("suite_tests::double"), OpSpec(torch.ops.suite_tests.double.default)])


def test_an_unavailable_op_need_not_exist():
    (entry,) = specs.entries([OpSpec("suite_tests::on_mars", unavailable={"native": "no compiler"})])
    assert entry.info is None
    assert entry.name == "suite_tests::on_mars"


# -- loading


def test_a_module_with_specs_is_loaded_by_name_and_by_path(fixtures):
    by_name = specs.load("tests.fixtures.mixed_specs")
    names = ["suite_mixed::clean", "suite_mixed::failing", "suite_mixed::expected", "suite_mixed::absent"]
    assert [e.name for e in by_name.entries] == names
    assert not by_name.bare


def test_a_file_is_loaded_once(scratch):
    file = scratch / "once.py"
    file.write_text("from opcheck_suite import OpSpec\nSPECS = [OpSpec('suite_tests::double')]\n")
    first = specs.load("once.py").entries[0].spec
    assert specs.load("./once.py").entries[0].spec is first
    assert specs.load(str(file)).entries[0].spec is first


def test_files_of_one_name_are_two_modules(scratch):
    for folder, op in (("one", "double"), ("two", "scale")):
        (scratch / folder).mkdir()
        text = f"from opcheck_suite import OpSpec\nSPECS = [OpSpec('suite_tests::{op}')]\n"
        (scratch / folder / "s.py").write_text(text)
    assert specs.load("one/s.py").entries[0].name == "suite_tests::double"
    assert specs.load("two/s.py").entries[0].name == "suite_tests::scale"


def test_a_file_may_import_its_neighbours(scratch):
    (scratch / "pkg").mkdir()
    (scratch / "pkg" / "suite_neighbour.py").write_text("NAME = 'suite_tests::double'\n")
    (scratch / "pkg" / "s.py").write_text(
        "from suite_neighbour import NAME\nfrom opcheck_suite import OpSpec\nSPECS = [OpSpec(NAME)]\n"
    )
    path = list(sys.path)
    assert specs.load("pkg/s.py").entries[0].name == "suite_tests::double"
    assert sys.path == path


def test_specs_may_be_a_function(scratch):
    (scratch / "f.py").write_text(
        "from opcheck_suite import OpSpec\ndef SPECS():\n    yield OpSpec('suite_tests::double')\n"
    )
    assert [e.name for e in specs.load("f.py").entries] == ["suite_tests::double"]


def test_a_module_without_specs_stands_for_the_ops_it_registers(scratch):
    (scratch / "bare_ops.py").write_text(
        "import torch\nlib = torch.library.Library('suite_bare', 'DEF')\n"
        "lib.define('g(Tensor x) -> Tensor')\nlib.define('f(Tensor x) -> Tensor')\n"
    )
    loaded = specs.load("bare_ops")
    assert loaded.bare
    assert [e.name for e in loaded.entries] == ["suite_bare::f", "suite_bare::g"]
    assert all(e.spec.samples == () for e in loaded.entries)
    again = specs.load("bare_ops")
    assert [e.name for e in again.entries] == ["suite_bare::f", "suite_bare::g"], "imported before, still found"


def test_a_namespace_and_a_glob_stand_for_ops():
    assert "suite_tests::double" in [e.name for e in specs.load("suite_tests").entries]
    assert [e.name for e in specs.load("suite_tests::doub*").entries] == ["suite_tests::double"]
    assert len(specs.load("suite_tests::several").entries) == 2


def test_loading_by_name_looks_in_the_working_directory(scratch):
    (scratch / "suite_local.py").write_text(
        "from opcheck_suite import OpSpec\nSPECS = [OpSpec('suite_tests::double')]\n"
    )
    assert specs.load("suite_local").entries[0].name == "suite_tests::double"


def test_first_line_of_an_error():
    assert specs.first_line(ValueError("one\ntwo")) == "one"
    assert specs.first_line(ValueError()) == "no message"
    assert len(specs.first_line(ValueError("x" * 999))) == 200
