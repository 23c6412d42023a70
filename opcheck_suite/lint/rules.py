"""What `opcheck lint` reports, as data."""

from __future__ import annotations

import dataclasses

from opcheck_suite.deprecated import DEPRECATED, Api
from opcheck_suite.registry import UsageError, did_you_mean
from opcheck_suite.reserved import RESERVED


@dataclasses.dataclass(frozen=True)
class Rule:
    """One kind of finding, with its documentation."""

    id: str
    title: str
    what: str
    why: str
    fix: str
    docs: str
    """A link."""
    optional: bool = False
    """Whether it is looked for only when asked to."""

    @property
    def apis(self) -> tuple[Api, ...]:
        """The names that it reports, for a rule of names."""
        return tuple(api for api in DEPRECATED if api.rule == self.id)


RULES: tuple[Rule, ...] = (
    Rule(
        id="lint.custom_op",
        title="torch's first custom-op API",
        what="Finds imports and uses of torch._custom_op and torch._custom_ops, under whatever name.",
        why="They are private, deprecated since torch 2.5, and warn that they are going to be removed.",
        fix="Use torch.library.custom_op, or torch.library.define with torch.library.impl.",
        docs="https://github.com/pytorch/pytorch/pull/130032",
    ),
    Rule(
        id="lint.impl_abstract",
        title="register_fake under its old name",
        what="Finds imports and uses of torch.library.impl_abstract.",
        why="It was renamed in torch 2.4, warns whenever it is used, and is going to be removed.",
        fix="Use torch.library.register_fake, which takes the same arguments.",
        docs="https://github.com/pytorch/pytorch/pull/123937",
    ),
    Rule(
        id="lint.create_unbacked_symint",
        title="new_dynamic_size under its old name",
        what="Finds create_unbacked_symint on what torch.library.get_ctx() returns.",
        why="It warns whenever a fake kernel runs, and its least size of 2 was wrong for data that can be empty.",
        fix="Use new_dynamic_size. Give min=2 where sizes 0 and 1 really do not occur.",
        docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.get_ctx",
    ),
    Rule(
        id="lint.impl_abstract_pystub",
        title="set_python_module under its old name",
        what="Finds m.impl_abstract_pystub in C++.",
        why="torch/library.h keeps it for old sources only.",
        fix="Use m.set_python_module, which takes the same arguments.",
        docs="https://github.com/pytorch/pytorch/blob/v2.13.0/torch/library.h",
    ),
    Rule(
        id="lint.capture_triton",
        title="wrap_triton under its old name",
        what="Finds imports and uses of torch._library.capture_triton.",
        why="It is private, and was renamed when torch 2.6 made it public.",
        fix="Use torch.library.wrap_triton.",
        docs="https://github.com/pytorch/pytorch/pull/141880",
    ),
    Rule(
        id="lint.private",
        title="A private name of torch that has a public one",
        what="Finds names below torch._library, methods of Library with an underscore, and torch's test utilities, "
        "where torch.library has the same in public.",
        why="Private names change without notice in any release.",
        fix="Use the public name, which the finding says.",
        docs="https://docs.pytorch.org/docs/stable/library.html",
    ),
    Rule(
        id="lint.reserved_namespace",
        title="An operator is defined in a namespace that belongs to PyTorch",
        what="Finds custom_op, triton_op, define and Library (DEF or FRAGMENT) in Python, and TORCH_LIBRARY, "
        "TORCH_LIBRARY_FRAGMENT, their STABLE_ forms and m.def in C++, with one of " + ", ".join(RESERVED) + ". "
        "Kernels for PyTorch's own operators (Library with IMPL, TORCH_LIBRARY_IMPL) are no finding.",
        why="A later PyTorch may define an operator of that name, and then neither works. torch.library itself refuses "
        "only prim.",
        fix="Use a namespace named after your library.",
        docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    ),
    Rule(
        id="lint.syntax",
        title="A file that does not parse",
        what="Reports where a Python file, or a C++ file that registers operators, cannot be read on.",
        why="Nothing was looked for in it.",
        fix="Correct it. Sources for a newer Python than the one that runs opcheck do not parse, either.",
        docs="https://docs.python.org/3/library/ast.html#ast.parse",
    ),
    Rule(
        id="lint.unreadable",
        title="A file that is no text",
        what="Reports files that cannot be opened or decoded.",
        why="Nothing was looked for in it.",
        fix="Save it as UTF-8, or name its encoding in its first line.",
        docs="https://docs.python.org/3/reference/lexical_analysis.html#encoding-declarations",
    ),
    Rule(
        id="lint.ignore",
        title="An ignore comment that cannot be understood",
        what="Reports comments `opcheck: ignore` that name no rule, or one that there is not.",
        why="It ignores nothing, and whoever wrote it believes that it does.",
        fix="Write `# opcheck: ignore[lint.impl_abstract]`, several ids with commas; in C++ after //.",
        docs="https://docs.astral.sh/ruff/linter/#error-suppression",
    ),
    Rule(
        id="lint.unused_ignore",
        title="An ignore comment that ignores nothing",
        what="With --unused-ignores, reports ids of ignore comments that have no finding on their line.",
        why="What is left over hides the next finding on the line.",
        fix="Remove it.",
        docs="https://docs.astral.sh/ruff/rules/unused-noqa/",
        optional=True,
    ),
)


def ids() -> list[str]:
    """The ids of all rules."""
    return [rule.id for rule in RULES]


def get(id: str) -> Rule:
    """The rule of that id. Raises UsageError with the nearest id when there is none."""
    for rule in RULES:
        if rule.id == id:
            return rule
    raise UsageError(f"unknown rule {id!r}{did_you_mean(id, ids())}")
