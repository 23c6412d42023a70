"""The catalogue: what is refused, what is found, what is selected."""

from __future__ import annotations

import dataclasses

import pytest

from opcheck_suite import registry
from opcheck_suite.model import FAMILIES, Outcome, Tier
from opcheck_suite.registry import UsageError

COMPLETE = {
    "id": "values.tested",
    "title": "It is wrong",
    "what": "Looks.",
    "why": "It matters.",
    "fix": "Correct it.",
    "docs": "https://docs.pytorch.org/",
    "tier": "quick",
}


@pytest.fixture
def catalogue(monkeypatch):
    """A copy of the catalogue that a test may add to."""
    registry.all_checks()
    monkeypatch.setattr(registry, "_CHECKS", dict(registry._CHECKS))


def _looks(ctx, case):
    """A check's function."""


def test_a_complete_check_is_added(catalogue):
    assert registry.check(**COMPLETE)(_looks) is _looks
    added = registry.get("values.tested")
    assert added.fn is _looks
    assert (added.family, added.tier, added.severity) == ("values", Tier.QUICK, Outcome.FAIL)
    assert "values.tested" in [c.id for c in registry.all_checks()]


@pytest.mark.parametrize("lacking", ["title", "what", "why", "fix", "docs", "since"])
def test_incomplete_documentation_is_refused(catalogue, lacking):
    with pytest.raises(ValueError, match=f"check values.tested: {lacking} must not be empty"):
        registry.check(**COMPLETE | {lacking: "  "})(_looks)


@pytest.mark.parametrize("lacking", sorted(COMPLETE))
def test_documentation_that_is_not_given_is_refused(lacking):
    with pytest.raises(TypeError, match=lacking):
        registry.check(**{k: v for k, v in COMPLETE.items() if k != lacking})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": "Values.tested"}, "must be family.subject"),
        ({"id": "tested"}, "must be family.subject"),
        ({"id": "value.tested"}, "with a family of namespace, deprecated"),
        ({"docs": "see the manual"}, "docs must be a link"),
        ({"scope": "sample"}, "scope 'sample' must be one of op, case, signature"),
        ({"tier": "static"}, "a static check has scope 'op'"),
        ({"tier": "quik"}, "'quik' is not a valid Tier"),
        ({"severity": "fatal"}, "'fatal' is not a valid Outcome"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(catalogue, change, told):
    with pytest.raises(ValueError, match=told):
        registry.check(**COMPLETE | change)(_looks)
    assert "values.tested" not in registry._CHECKS


def test_an_id_that_is_taken_is_refused_with_both_places(catalogue):
    with pytest.raises(ValueError, match=r"check fake.strides is defined in .*fake.strides and again in tests\."):
        registry.check(**COMPLETE | {"id": "fake.strides"})(_looks)


def test_checks_of_other_packages_are_found(catalogue, monkeypatch):
    class Entry:
        @staticmethod
        def load():
            registry.check(**COMPLETE | {"id": "values.foreign"})(_looks)

    asked = []

    def entry_points(*, group):
        asked.append(group)
        return [Entry]

    monkeypatch.setattr(registry, "_discovered", False)
    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert registry.get("values.foreign").fn is _looks
    assert asked == ["opcheck_suite.checks"]


# -- what is there


def test_every_check_is_complete_and_sits_in_the_folder_of_its_family():
    for check in registry.all_checks():
        home = check.fn.__module__.removeprefix("opcheck_suite.checks.")
        assert home == check.id, "one check a file, named like it"
        assert check.what.endswith(".")
        assert check.fix.endswith(".")
        assert not check.title.endswith(".")


def test_checks_run_by_family_and_values_before_what_builds_on_them():
    checks = registry.all_checks()
    ranks = [FAMILIES.index(c.family) for c in checks]
    assert ranks == sorted(ranks)
    ids = [c.id for c in checks]
    assert next(i for i in ids if i.startswith("values.")) == "values.runs"
    assert next(i for i in ids if i.startswith("fake.")) == "fake.runs"


def test_every_group_of_variants_that_a_check_names_exists():
    from opcheck_suite.inputs import variants

    named = {group for check in registry.all_checks() for group in check.variants}
    assert named - {"sample"} <= set(variants.groups())


def test_every_group_of_variants_has_an_owner_that_runs_it():
    from opcheck_suite.inputs import variants

    for group in ("sample", *variants.groups()):
        owner = registry.get(registry.owner("eager", group))
        assert owner.family == "values"
        assert group in owner.variants
    assert registry.owner("fake", "empty") == "fake.runs"
    used = {group for check in registry.all_checks() if check.family == "fake" for group in check.variants}
    # with other content a call with fake tensors is the sample's own: they have none; of the others one check each is
    # the only one to try them, and tells of a death itself
    assert used - {"content", "ranks", "lazy"} <= set(registry.get("fake.runs").variants)


# -- looking up


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("fake.stride", "fake.strides"), ("value.runs", "values.runs"), ("strides", "fake.strides")],
)
def test_an_unknown_id_is_told_with_the_nearest(wrong, right):
    with pytest.raises(UsageError, match=f"unknown check '{wrong}'; did you mean '{right}'"):
        registry.get(wrong)


def test_a_word_like_no_other_gets_no_proposal():
    assert registry.did_you_mean("xyzzy", ["fake.runs", "values.runs"]) == ""
    assert registry.did_you_mean("", ["fake.runs"]) == ""


def test_one_of_returns_what_is_allowed_and_lists_what_is():
    assert registry.one_of("tier", "quick", ["quick", "full"]) == "quick"
    with pytest.raises(UsageError, match="unknown tier 'qick'; did you mean 'quick'"):
        registry.one_of("tier", "qick", ["quick", "full"])
    with pytest.raises(UsageError, match="unknown tier 'xyz'; it is one of quick, full"):
        registry.one_of("tier", "xyz", ["quick", "full"])


# -- selecting


def _ids(*patterns: str, tier: Tier = Tier.STATIC) -> set[str]:
    return {c.id for c in registry.select(patterns, tier=tier)}


def _family(name: str) -> set[str]:
    return {c.id for c in registry.all_checks() if c.family == name}


def test_without_patterns_the_tier_decides():
    every = registry.all_checks()
    for tier in Tier:
        assert _ids(tier=tier) == {c.id for c in every if tier.includes(c.tier)}
    assert _ids(tier=Tier.STATIC) < _ids(tier=Tier.QUICK) < _ids(tier=Tier.STANDARD) <= _ids(tier=Tier.FULL)
    assert _ids(tier=Tier.FULL) == {c.id for c in every}


def test_patterns_are_ids_families_and_globs_whatever_the_tier():
    assert _ids("fake.strides") == {"fake.strides"}
    assert _ids("fake") == _ids("fake.*") == _family("fake")
    assert _ids("*.runs") == {"autograd.runs", "fake.runs", "values.runs"}
    assert _ids("values", "fake.shape") == _family("values") | {"fake.shape"}


@pytest.mark.parametrize("mark", ["!", "-"])
def test_negated_patterns_take_away(mark):
    assert _ids("fake", f"{mark}fake.strides") == _family("fake") - {"fake.strides"}
    assert _ids(f"{mark}fake.strides", "fake") == _family("fake") - {"fake.strides"}
    assert _ids(f"{mark}fake", tier=Tier.FULL) == {c.id for c in registry.all_checks()} - _family("fake")
    assert _ids("fake", f"{mark}fake.*") == set()


@pytest.mark.parametrize("pattern", ["fke", "!fke", "fak.*"])
def test_a_pattern_that_matches_nothing_is_told_with_the_nearest(pattern):
    with pytest.raises(UsageError, match=r"unknown check 'fa?ke?(\.\*)?'; did you mean 'fake"):
        registry.select([pattern], tier=Tier.FULL)


def test_a_family_without_checks_is_told_from_a_wrong_name(monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", (*FAMILIES, "planned"))
    with pytest.raises(UsageError, match="there is no check of family 'planned' yet"):
        registry.select(["planned"], tier=Tier.QUICK)


def test_selected_checks_come_in_the_order_in_which_they_run():
    order = [c.id for c in registry.all_checks()]
    chosen = [c.id for c in registry.select(["fake", "namespace", "values"], tier=Tier.FULL)]
    assert chosen == [id for id in order if id in set(chosen)]


def test_whoever_looks_at_outputs_gets_the_checks_that_say_there_are_some():
    def with_prerequisites(*patterns):
        return {c.id for c in registry.prerequisites(registry.select(patterns, tier=Tier.STATIC))}

    assert with_prerequisites("fake.shape") == {"values.runs", "fake.runs", "fake.shape"}
    assert with_prerequisites("schema.mutation") == {"values.runs", "schema.mutation"}
    assert with_prerequisites("namespace") == _family("namespace")


def test_the_types_of_the_model_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        registry.get("fake.runs").title = "another"


def test_checks_that_are_asked_for_come_beside_those_of_a_tier_and_not_beside_patterns():
    quick = {c.id for c in registry.select((), tier=Tier.QUICK)}
    assert "values.large" not in quick
    assert {c.id for c in registry.select((), tier=Tier.QUICK, also=("values.large",))} == quick | {"values.large"}
    assert [c.id for c in registry.select(("values.runs",), tier=Tier.QUICK, also=("values.large",))] == ["values.runs"]
    assert "values.large" not in {
        c.id for c in registry.select(("!values.large",), tier=Tier.FULL, also=("values.large",))
    }
