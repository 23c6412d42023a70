"""Variants: one change each, and nothing else changed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck_suite import Sample, ops, registry
from opcheck_suite.inputs import cases, dtypes, huge, layouts, sizes, tensors, variants
from opcheck_suite.model import Tier
from tests.fixtures import harness_ops

LAYOUTS = ("noncontiguous", "offset")


@pytest.fixture(scope="module", autouse=True)
def library():
    """Schemas only: no variant calls an op."""
    with torch.library._scoped_library("suite_variants", "DEF") as library:
        library.define("two(Tensor x, Tensor y, int n=2, int[] sizes=[]) -> Tensor")
        library.define("indexed(Tensor x, Tensor index) -> Tensor")
        library.define("all(Tensor x, Tensor y, Tensor index, float f=1.0, bool b=False) -> Tensor")
        library.define("written(Tensor(a!) x, Tensor y) -> ()")
        library.define("listed(Tensor[] xs) -> Tensor")
        library.define("sized(Tensor x, SymInt n, float f=3.0, bool b=True) -> Tensor")
        library.define("flagged(Tensor x, Tensor? bias, bool has_bias, bool wide) -> Tensor")
        library.define("lazy(Tensor(a!) x, Tensor y, Tensor z) -> ()")
        for key in ("Conjugate", "Negative"):
            library.impl("lazy", torch.library.fallthrough_kernel, key)
        yield library


def case(name: str, *args, **kwargs) -> cases.Case:
    info = ops.info(f"suite_variants::{name}")
    return cases.of_sample(info, Sample(args=args, kwargs=kwargs, name="s"), "cpu")


def shapes(made: cases.Case) -> list[tuple[int, ...]]:
    return [tuple(t.shape) for _, t in made.leaves()]


def names(found: list[cases.Case]) -> list[str]:
    return [c.variant for c in found]


# -- layouts


def test_layout_variants_are_named_after_the_argument_they_change():
    found = variants.derive(case("two", torch.rand(2, 3), torch.rand(4)), "noncontiguous")
    assert names(found) == [
        "transposed(x)",
        "a gap after each element(x)",
        "a gap after each element(y)",
        "a gap after each element(all)",
        "padded rows(x)",
    ]
    assert names(variants.derive(case("listed", [torch.rand(2), torch.rand(3)]), "offset")) == [
        "offset(xs[0])",
        "offset(xs[1])",
        "offset(all)",
    ]


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int64, torch.uint8]
DTYPES += [torch.bool, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("group", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layout_variants_keep_values_shapes_and_dtypes(group, dtype):
    x = (torch.arange(24) % 5).reshape(2, 3, 4).to(dtype)
    base = case("two", x, x[0])
    found = variants.derive(base, group)
    assert found
    for made in found:
        for (name, a), (_, b) in zip(made.leaves(), base.leaves(), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), (made.variant, name)
            assert torch.equal(a.to(torch.complex128), b.to(torch.complex128)), (made.variant, name)


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_layout_variants_keep_values_for_any_shape(shape):
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    for change in (layouts.transposed, layouts.gapped, layouts.padded, layouts.shifted, layouts.neg_view):
        made = change(x)
        assert made is None or torch.equal(made, x)


def test_each_layout_is_what_its_name_says():
    x = torch.rand(3, 4)
    assert layouts.transposed(x).stride() == (1, 3)
    assert layouts.gapped(x).stride() == (8, 2)
    assert layouts.padded(x).stride() == (7, 1)
    assert layouts.shifted(x).storage_offset() == 1
    assert layouts.shifted(x).is_contiguous()
    assert layouts.shifted(x).data_ptr() % 16 != 0


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex128], ids=str)
def test_an_offset_breaks_the_alignment_of_vector_loads(dtype):
    """Elements of 16 bytes cannot be misaligned by less than one; for them it is 32 bytes."""
    x = torch.zeros(4, 8, dtype=torch.uint8).to(dtype)
    (made,) = variants.derive(case("two", x, torch.tensor(1.0)), "offset")[:1]
    (first, _), _ = made.inputs()
    assert first.data_ptr() % max(16, 2 * first.element_size()) == first.element_size()


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 5, 6), (1, 3, 4, 1)])
def test_images_and_volumes_are_made_channels_last(shape):
    x = torch.rand(shape)
    made = layouts.channels_last(x)
    order = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    assert made.is_contiguous(memory_format=order)
    assert not made.is_contiguous()
    assert torch.equal(made, x)
    (args, _) = case("two", made, x).inputs()
    assert args[0].stride() == made.stride()


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 4, 5), (2, 3, 1, 1), (0, 3, 4, 5)])
def test_what_has_no_order_of_channels_is_not_made_channels_last(shape):
    assert layouts.channels_last(torch.rand(shape)) is None
    assert "channels last(x)" not in names(variants.derive(case("two", torch.rand(shape), torch.rand(2)), LAYOUTS[0]))


def test_lazy_views_have_their_bit_and_the_values():
    z, x = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([[1.0, -2.0]])
    conj, neg = layouts.conj_view(z), layouts.neg_view(x)
    assert (conj.is_conj(), neg.is_neg()) == (True, True)
    assert torch.equal(conj, z)
    assert torch.equal(neg, x)
    assert not tensors.overlap(conj, z)
    assert layouts.conj_view(x) is None
    assert layouts.neg_view(z) is None
    assert layouts.neg_view(torch.ones(2, dtype=torch.int64)) is None


def test_lazy_views_are_for_ops_that_meet_them_and_for_what_is_not_written():
    z, x = torch.tensor([1 + 2j]), torch.ones(2)
    found = variants.derive(case("lazy", x, z, x), "lazy")
    assert names(found) == ["conj view(y)", "neg view(z)"]
    assert variants.derive(case("all", z, x, torch.tensor([0])), "lazy") == []


def test_layouts_that_would_change_nothing_are_not_made():
    assert layouts.transposed(torch.rand(3)) is None
    assert layouts.transposed(torch.rand(1, 3)) is None
    assert layouts.padded(torch.rand(3)) is None
    assert layouts.gapped(torch.tensor(1.0)) is None
    assert variants.derive(case("two", torch.rand(1), torch.rand(())), "noncontiguous") == []


@pytest.mark.parametrize("change", [layouts.gapped, layouts.padded, layouts.shifted])
def test_memory_that_a_view_skips_holds_what_no_result_should_depend_on(change):
    x = torch.ones(3, 4)
    made = change(x)
    buffer = torch.empty(0).set_(made.untyped_storage())
    hidden = buffer[~tensors.visible_bytes(made).reshape(-1, 4).all(1)]
    assert hidden.numel() > 0
    assert hidden.isnan().all()
    whole = change(torch.ones(3, 4, dtype=torch.int64))
    buffer = torch.empty(0, dtype=torch.int64).set_(whole.untyped_storage())
    hidden = buffer[~tensors.visible_bytes(whole).reshape(-1, 8).all(1)]
    assert (hidden > 2**60).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_is_garbage_of_every_dtype(dtype):
    made = layouts.garbage(torch.zeros(1, dtype=dtype), (2, 3))
    assert (made.dtype, tuple(made.shape)) == (dtype, (2, 3))
    assert made.to(torch.complex128).ne(0).all()


def test_expanding_broadcasts_the_first_row():
    x = torch.arange(6.0).reshape(2, 3)
    (first, second) = variants.derive(case("two", x, x + 1), "expanded")
    assert (first.variant, second.variant) == ("expanded(x)", "expanded(y)")
    assert first.args[0].stride() == (0, 1)
    assert torch.equal(first.args[0], x[:1].expand(2, 3))
    assert first.args[1] is not None
    assert torch.equal(first.args[1], x + 1)


def test_what_an_op_writes_is_never_expanded():
    x = torch.rand(2, 3)
    assert names(variants.derive(case("written", x, x.clone()), "expanded")) == ["expanded(y)"]


# -- shared memory


def test_arguments_of_one_shape_and_dtype_share_memory():
    x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])
    same, overlapping = variants.derive(case("two", x, y), "shared")
    assert (same.variant, overlapping.variant) == ("one tensor for x, y", "overlapping views(x, y)")
    assert same.args[0] is same.args[1]
    assert torch.equal(same.args[0], x)
    (a, b), _ = overlapping.inputs()
    assert tensors.overlap(a, b)
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert (a.tolist(), b.tolist()) == ([[1.0], [3.0]], [[3.0], [4.0]])
    assert same.uncertain
    assert overlapping.uncertain


def test_what_is_packed_shares_no_memory():
    same, _ = variants.derive(case("two", torch.rand(2), torch.rand(2)), "shared")
    (a, b), _ = same.packed().inputs()
    assert torch.equal(a, b)
    assert not tensors.overlap(a, b)


def test_members_of_lists_share_memory():
    found = variants.derive(case("listed", [torch.rand(2), torch.rand(3), torch.rand(2)]), "shared")
    assert names(found) == ["one tensor for xs[0], xs[2]", "overlapping views(xs[0], xs[2])"]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("two", (torch.rand(2), torch.rand(3))),
        ("two", (torch.rand(2), torch.rand(2).double())),
        ("two", (torch.tensor([1, 2]), torch.tensor([0, 1]))),
        ("written", (torch.rand(2), torch.rand(2))),
    ],
    ids=["shapes", "dtypes", "positions", "written"],
)
def test_what_shares_no_memory(name, args):
    assert variants.derive(case(name, *args), "shared") == []


# -- dtypes


def test_complex_copies_have_an_imaginary_part_of_the_size_of_the_real_one():
    x = torch.tensor([[1.0, -2.0, 0.0], [3.0, 0.25, -4.0], [5.0, 6.0, 7.0]]).t()
    (found,) = variants.derive(case("two", x, torch.tensor([0, 1])), "complex")
    assert (found.variant, found.args[0].dtype, found.args[1].dtype) == ("complex64", torch.complex64, torch.int64)
    assert torch.equal(found.args[0].real, x)
    share = found.args[0].imag.abs()[x != 0] / x.abs()[x != 0]
    assert share.min() >= 0.25
    assert share.max() <= 0.5
    assert found.args[0].imag[x == 0].tolist() == [0]


def test_positive_numbers_stay_on_the_right_in_products_of_three():
    z = dtypes.with_imaginary(torch.rand(50) + 0.1)
    assert (z * z.flip(0) * z).real.min() > 0


def test_complex_copies_without_an_imaginary_part():
    x = torch.rand(2, 3)
    (found,) = variants.derive(case("two", x, torch.tensor([0, 1])), "real")
    assert found.variant == "complex64 without an imaginary part"
    assert torch.equal(found.args[0], x.to(torch.complex64))


@pytest.mark.parametrize("group", ["complex", "real"])
def test_samples_of_complex_numbers_are_not_made_complex(group):
    assert variants.derive(case("two", torch.rand(2), torch.rand(2, dtype=torch.complex64)), group) == []


def test_what_has_no_floating_point_numbers_is_not_made_complex():
    assert variants.derive(case("two", torch.tensor([1]), torch.tensor([True])), "complex") == []


def test_real_samples_have_conj_views_with_an_imaginary_part():
    x = torch.tensor([1.0, -2.0])
    found = variants.derive(case("lazy", x, x + 1, torch.tensor([0])), "lazy")
    assert names(found) == ["neg view(y)", "complex64, conj view(y)"]
    written, view, _ = found[-1].args
    assert view.is_conj()
    assert (written.is_conj(), written.dtype) == (False, torch.complex64)
    assert torch.equal(view, dtypes.with_imaginary(x + 1))
    assert view.imag.ne(0).all()


@pytest.mark.parametrize("given", [True, False])
def test_a_flag_that_speaks_of_an_argument_is_not_relied_on(given):
    x = torch.rand(2)
    found = variants.derive(case("flagged", x, x.clone() if given else None, given, False), "arguments")
    unsure = {c.variant: c.uncertain for c in found}
    if given:
        assert unsure == {"has_bias=False": True, "wide=True": False, "bias=None": True}
    else:
        assert unsure == {"has_bias=True": True, "wide=True": False, "bias: given": True}


def test_variants_do_not_touch_the_sample():
    x = torch.arange(6.0).reshape(2, 3)
    base = case("two", x, x.clone())
    for group in variants.groups():
        for made in variants.derive(base, group):
            for _, tensor in zip(made.leaves(), base.leaves(), strict=True):
                assert tensor is not None
            args, _ = made.inputs()
            args[0].zero_()
    assert torch.equal(x, torch.arange(6.0).reshape(2, 3))


def fitting(group):
    """A sample of which the group makes variants; ranks stay as they are beside positions."""
    floats = harness_ops.matrix()
    if group == "huge":
        return case("sized", floats, 7)
    if group in ("ranks", "broadcast"):
        return case("two", floats, floats.clone())
    if group == "lazy":
        return case("lazy", floats, floats.clone(), floats.to(torch.complex64))
    return case("all", floats, floats.clone(), torch.tensor([0, 1]), 2.5, True)


@pytest.mark.parametrize("group", variants.groups())
def test_the_same_sample_gives_the_same_variants(group):
    def made():
        return variants.derive(fitting(group), group)

    assert names(made()) == names(made())
    assert [shapes(c) for c in made()] == [shapes(c) for c in made()]
    assert len(set(names(made()))) == len(made())
    assert {c.group for c in made()} == {group}


# -- sizes


def test_equal_sizes_change_together():
    base = case("two", torch.rand(4, 3), torch.rand(3), n=3, sizes=[4, 3, 5])
    found = {c.variant: c for c in variants.derive(base, "resized")}
    assert list(found) == ["size 7(x dim 0)", "size 7(x dim 1)", "sizes 7(x dim 0), 11(x dim 1)"]
    assert shapes(found["sizes 7(x dim 0), 11(x dim 1)"]) == [(7, 11), (11,)]
    second = found["size 7(x dim 1)"]
    assert shapes(second) == [(4, 7), (7,)]
    assert second.bound()["n"] == 7
    assert second.bound()["sizes"] == [4, 7, 5]
    first = found["size 7(x dim 0)"]
    assert shapes(first) == [(7, 3), (3,)]
    assert (first.bound()["n"], first.bound()["sizes"]) == (3, [7, 3, 5])


def test_a_new_size_is_one_that_the_sample_does_not_have():
    found = variants.derive(case("two", torch.rand(7, 11), torch.rand(13)), "resized")
    assert {name.partition("(")[0] for name in names(found)} == {"size 5", "size 17", "sizes 17"}


def test_only_whole_numbers_are_taken_for_sizes():
    base = case("sized", torch.rand(3), 3, f=3.0, b=True)
    (found,) = variants.derive(base, "empty")
    assert found.bound()["n"] == 0
    assert (found.bound()["f"], found.bound()["b"]) == (3.0, True)


def test_empty_and_single_sizes():
    base = case("two", torch.rand(4, 3), torch.rand(3))
    assert [shapes(c) for c in variants.derive(base, "empty")] == [[(0, 3), (3,)], [(4, 0), (0,)]]
    assert [shapes(c) for c in variants.derive(base, "ones")] == [[(1, 3), (3,)], [(4, 1), (1,)]]


def test_several_sizes_change_at_once_without_becoming_one():
    base = case("two", torch.rand(12, 4), torch.rand(4), n=12, sizes=[12, 4, 5])
    made = sizes.reduced(base, {12: 4, 4: 1})
    assert shapes(made) == [(4, 1), (1,)]
    assert (made.bound()["n"], made.bound()["sizes"]) == (4, [4, 1, 5])
    assert sizes.reduced(base, {7: 1}) is None


def test_sizes_that_can_be_reduced_are_rows_first_and_then_the_largest():
    base = case("two", torch.rand(4, 30, 8), torch.rand(30, 1))
    assert sizes.reducible(base) == [30, 4, 8]
    assert sizes.reducible(case("two", torch.rand(4, 30, 8), torch.rand(1))) == [4, 30, 8]


def test_sizes_of_one_are_left_alone():
    assert variants.derive(case("two", torch.rand(1), torch.rand(())), "empty") == []
    assert variants.derive(case("two", torch.rand(1), torch.rand(())), "resized") == []


def test_resized_values_are_those_of_the_sample_again():
    x = torch.tensor([5.0, 6.0, 8.0])
    (found,) = variants.derive(case("two", x, torch.tensor(1.0)), "resized")
    assert found.args[0].tolist() == [5, 6, 8, 5, 6, 8, 5]
    (single,) = variants.derive(case("two", x, torch.tensor(1.0)), "ones")
    assert single.args[0].tolist() == [5]


def test_what_may_index_does_not_get_less_to_index_into():
    base = case("indexed", torch.rand(5), torch.tensor([4, 0]))
    assert names(variants.derive(base, "ones")) == ["size 1(index dim 0)"]
    both = "sizes 7(x dim 0), 11(index dim 0)"
    assert names(variants.derive(base, "resized")) == ["size 7(x dim 0)", "size 7(index dim 0)", both]


def test_rows_of_all_groups_are_put_in_one():
    (made,) = [
        c
        for c in variants.derive(case("indexed", torch.rand(5, 2), torch.tensor([1, 3, 1, 2, 3])), "content")
        if c.variant == "one group(index)"
    ]
    assert made.args[1].tolist() == [1] * 5


@pytest.mark.parametrize(
    "index",
    [
        [1, 3, 2, 0, 4],  # each row has a place of its own
        [1, 1, 1, 1, 1],
        [1, 1, 2],  # not one for each row
        [2, 0, 2, 0, 1],  # counts, which must add up
        [0, 1, 1, 5, 5],  # offsets
    ],
)
def test_integers_that_may_be_no_groups_stay(index):
    found = variants.derive(case("indexed", torch.rand(5, 2), torch.tensor(index)), "content")
    assert "one group(index)" not in names(found)


def test_sizes_that_add_up_are_not_changed():
    base = case("two", torch.rand(6), torch.tensor(1.0), sizes=[2, 4])
    assert variants.derive(base, "resized") == []


def test_tensors_without_plain_storage_have_no_variants():
    base = case("two", torch.eye(3).to_sparse(), torch.rand(2))
    assert names(variants.derive(base, "noncontiguous")) == ["a gap after each element(y)"]
    assert variants.derive(base, "empty") == []


def test_every_group_makes_variants():
    assert [group for group in variants.groups() if not variants.derive(fitting(group), group)] == []


def test_huge_tensors_take_no_memory():
    (made,) = huge.longer(case("two", torch.ones(4, 8), torch.ones(4, 8)), huge.BEYOND)
    for _, t in made.leaves():
        assert t.numel() > 2**31
        assert t.untyped_storage().nbytes() == 4 * 4
    assert made.variant == "2,147,483,649 elements"
    assert not list(huge.longer(case("written", torch.ones(4), torch.ones(4)), huge.BEYOND))


def test_huge_numbers_have_the_lower_bits_of_the_sample_and_are_no_sizes():
    (made,) = huge.higher(case("two", torch.ones(4), torch.ones(4), 7), huge.WRAP)
    assert made.bound()["n"] == 7 + 2**32
    assert not list(huge.higher(case("sized", torch.ones(4), 4), huge.WRAP))


@pytest.mark.parametrize("n", [0, 1])
def test_what_is_huge_is_tried_smaller_first(n):
    sample = case("two", torch.ones(4), torch.ones(4), 7)
    made = variants.derive(sample, "huge")[n]
    *tiny, (first, step), (second, last) = huge.smaller(sample, made)
    assert [(t.numel(), coming) for one, coming in tiny for _, t in one.leaves()] == [(64, 2**7)] * 2 * (n == 0)
    assert (step, last) == (2**7, (2**32, 2**31 + 1)[n == 0] / 2**20)
    if n == 0:
        assert [t.numel() for _, t in first.leaves()] == [2**13] * 2
        assert [t.numel() for _, t in second.leaves()] == [2**20] * 2
    else:
        assert (first.bound()["n"], second.bound()["n"]) == (7 + 2**13, 7 + 2**20)


def test_offsets_in_a_list_of_integers_stay_in_order():
    sample = case("two", torch.ones(3), torch.ones(6), 2, [0, 3, 6])
    assert sizes.resized(sample, 3, 7) is None
    made = sizes.resized(sample, 6, 11)
    assert made is not None
    assert made.bound()["sizes"] == [0, 3, 11]


def test_a_quick_run_leaves_out_what_rarely_shows_more():
    sample = fitting("offset")
    assert variants.derive(sample, "offset", tier=Tier.QUICK) == []
    quick = names(variants.derive(sample, "noncontiguous", tier=Tier.QUICK))
    assert "transposed(x)" in quick
    assert "padded rows(x)" not in quick
    assert set(quick) < set(names(variants.derive(sample, "noncontiguous")))


@pytest.mark.parametrize("check", [c for c in registry.all_checks() if c.scope != "op"], ids=lambda c: c.id)
def test_every_check_has_variants_in_its_own_tier(check):
    def tiers(group):
        return [least for least, _ in variants._GROUPS[group]]

    variants.groups()
    assert any(group == "sample" or any(map(check.tier.includes, tiers(group))) for group in check.variants)


def test_an_argument_without_elements_has_no_variant_of_rank_zero():
    found = names(variants.derive(case("indexed", torch.rand(3), torch.zeros(0)), "ranks"))
    assert found == ["one more dimension"]
