"""What can be done about a graph break: one table from kinds of breaks to remedies.

A kind is recognised by torch's number of it, which is in the link of a break, or by torch's title, and sometimes by
what torch notes about the place. The first that fits is taken, so special kinds stand before general ones.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

_GUIDE = "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model."
_DOCS = "https://docs.pytorch.org/docs/stable/"


@dataclasses.dataclass(frozen=True)
class Remedy:
    """A way to get rid of a break, or to live with it."""

    title: str
    link: str


#: The remedies by the names that the table of kinds uses.
REMEDIES = {
    "rewrite": Remedy("rewrite as constant control flow", f"{_GUIDE}common_graph_breaks.html"),
    "torch": Remedy("rewrite in torch operations", f"{_GUIDE}common_graph_breaks.html"),
    "cond": Remedy("torch.cond", f"{_DOCS}generated/torch.cond.html"),
    "while_loop": Remedy("torch.while_loop", f"{_DOCS}higher_order_ops/while_loop.html"),
    "nonstrict": Remedy("torch._dynamo.nonstrict_trace", f"{_GUIDE}dynamo_nonstrict_trace.html"),
    "allow": Remedy("torch.compiler.allow_in_graph", f"{_DOCS}generated/torch.compiler.allow_in_graph.html"),
    "custom_op": Remedy("a custom operator", "https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html"),
    "fake": Remedy("a fake kernel", f"{_DOCS}library.html#torch.library.register_fake"),
    "setting": Remedy("a setting of Dynamo", f"{_GUIDE}common_graph_breaks.html"),
    "move": Remedy("move it out of the compiled function", f"{_GUIDE}where_to_apply_compile.html"),
    "remove": Remedy("remove it", f"{_GUIDE}common_graph_breaks.html"),
    "leave": Remedy("leave it, with fullgraph=False", f"{_GUIDE}fullgraph_false.html"),
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of break as a user sees it."""

    id: str
    says: str
    """What is the matter, in a few words."""
    advice: tuple[tuple[str, str], ...]
    """Remedies that fit, best first, each with what to do."""
    ids: tuple[str, ...] = ()
    """Torch's numbers."""
    titles: tuple[str, ...] = ()
    """Regular expressions, one of which torch's title begins with."""
    context: str = ""
    """A regular expression that is found in what torch notes about the place."""
    source: str = ""
    """A regular expression that is found in the line of code."""
    unfit: str = ""
    """Which remedies look as if they fit and do not, and why."""


_LEAVE = (
    "leave",
    "Where the graphs on both sides are large and nothing needs fullgraph=True or export, a break costs little.",
)
_NO_DATA = "nonstrict_trace and allow_in_graph run the code on fake tensors, which have no data to look at."

KINDS = (
    Kind(
        "explicit break",
        "the code asks for a break",
        (
            ("remove", "Delete the call: it is there for debugging."),
            ("nonstrict", "If it marks code that Dynamo cannot trace, decorate that function instead."),
            _LEAVE,
        ),
        ids=("GB0025", "GB4297", "GB4636"),
        titles=(r"Call to `torch\._dynamo\.",),
    ),
    Kind(
        "disabled function",
        "the function is marked torch.compiler.disable",
        (
            ("leave", "If whoever marked it had a reason, this is the price: one break, as meant."),
            ("remove", "If not, delete the mark and look at what Dynamo then says."),
            ("nonstrict", "If the function consists of torch operations, mark it with nonstrict_trace instead."),
        ),
        ids=("GB0098", "GB0099"),
        titles=(r"Skip (calling|inlining) `torch\.compiler\.disable",),
    ),
    Kind(
        "data-dependent loop",
        "a loop goes on until the value of a tensor ends it",
        (
            ("rewrite", "Run a fixed number of steps, and let torch.where(done, old, new) keep what is ready."),
            (
                "while_loop",
                "It keeps the loop in the graph; the body must return what it is given, in shape and dtype.",
            ),
            ("custom_op", "If the steps need neither fusion nor autograd, make the whole loop one operator."),
            _LEAVE,
        ),
        ids=("GB0170", "GB0035", "GB0124"),
        titles=(r"Data-dependent branching", r"generic_jump", r"Unsupported Tensor\.item\(\)"),
        source=r"^\s*while\b",
        unfit=_NO_DATA,
    ),
    Kind(
        "data-dependent branch",
        "a branch depends on the value of a tensor",
        (
            ("rewrite", "Compute both sides and choose: torch.where(condition, a, b)."),
            ("cond", "If a side is expensive; both must return the same shapes and dtypes."),
            _LEAVE,
        ),
        ids=("GB0170", "GB0035"),
        titles=(r"Data-dependent branching", r"generic_jump", r"Could not guard on data-dependent"),
        unfit=_NO_DATA,
    ),
    Kind(
        "number read from a tensor",
        "Python reads a number out of a tensor",
        (
            ("rewrite", "Keep it a 0-d tensor: torch operations take it as it is, and torch.where chooses by it."),
            ("cond", "If it decides between two computations: torch.cond(tensor > 0, f, g, operands)."),
            (
                "setting",
                "torch._dynamo.config.capture_scalar_outputs = True keeps it in the graph as an unknown number. It "
                "still breaks where Python decides by it.",
            ),
            ("custom_op", "If code outside of torch needs the number, make that code an operator."),
            _LEAVE,
        ),
        ids=("GB0124", "GB0109"),
        titles=(r"Unsupported Tensor\.item\(\)", r"Tensor\.tolist\(\)"),
        unfit=_NO_DATA,
    ),
    Kind(
        "number read from a tensor",
        "Python reads a number out of a tensor",
        (
            ("rewrite", "Keep it a 0-d tensor or array: torch operations take it as it is."),
            (
                "setting",
                "torch._dynamo.config.capture_scalar_outputs = True keeps it in the graph as an unknown number.",
            ),
            ("custom_op", "If code outside of torch needs the number, make that code an operator."),
            _LEAVE,
        ),
        ids=("GB0033",),
        titles=(r"Data dependent operator",),
        context=r"_local_scalar_dense",
        unfit=_NO_DATA,
    ),
    Kind(
        "comparison of data",
        "an operator answers a question about data with a Python bool",
        (
            ("rewrite", "Let the answer be a tensor, as (a == b).all(), and choose by it with torch.where."),
            ("cond", "If it decides between two computations: torch.cond((a == b).all(), f, g, operands)."),
            _LEAVE,
        ),
        ids=("GB0033",),
        titles=(r"Data dependent operator",),
        unfit=_NO_DATA,
    ),
    Kind(
        "data-dependent shape",
        "the shape of a result depends on the values of a tensor",
        (
            (
                "rewrite",
                "Keep the size and mask, as torch.where(mask, x, 0), or take torch.nonzero_static with a bound.",
            ),
            (
                "setting",
                "torch._dynamo.config.capture_dynamic_output_shape_ops = True captures it with an unknown size, also "
                "under fullgraph=True.",
            ),
            ("custom_op", "An operator whose fake kernel calls torch.library.get_ctx().new_dynamic_size()."),
            _LEAVE,
        ),
        ids=("GB0036", "GB0246", "GB0038"),
        titles=(r"Dynamic shape operator\Z", r"Attempted to use `torch\.nn\.functional\.one_hot`", r"Dynamic slicing"),
        unfit=_NO_DATA,
    ),
    Kind(
        "no fake kernel",
        "an operator has no fake kernel, so that the compiler does not know its outputs",
        (
            ("fake", "Register one; `opcheck run` then tells whether it is right."),
            _LEAVE,
        ),
        ids=("GB0090", "GB0037", "GB0087"),
        titles=(
            r"Operator does not support running with fake tensors",
            r"Dynamic shape operator \(no meta kernel\)",
            r"NotImplementedError/UnsupportedFakeTensorException",
        ),
    ),
    Kind(
        "print or log",
        "the code prints or logs",
        (
            (
                "setting",
                "torch._dynamo.config.reorderable_logging_functions.add(print) prints after the graph has run; "
                "torch._dynamo.config.ignore_logging_functions.add(logger.info) leaves it out.",
            ),
            ("remove", "Or log only where nothing is compiled: if not torch.compiler.is_compiling()."),
            _LEAVE,
        ),
        ids=("GB0291", "GB0296"),
        titles=(r"logging\.Logger method", r"attempted to reorder a debugging function"),
    ),
    Kind(
        "print or log",
        "the code prints or logs",
        (
            (
                "setting",
                "torch._dynamo.config.reorderable_logging_functions.add(print), or what else is called, prints after "
                "the graph has run.",
            ),
            ("remove", "Or print only where nothing is compiled: if not torch.compiler.is_compiling()."),
            _LEAVE,
        ),
        titles=(r"",),
        context=r"^builtin print\b|module: _?warnings, qualname: warn|LoggingLoggerVariable",
        unfit="nonstrict_trace and allow_in_graph print while tracing, and not when the compiled code runs.",
    ),
    Kind(
        "NumPy",
        "a NumPy function that torch has no counterpart of",
        (
            ("torch", "Then it is compiled, fused and differentiated. Most of NumPy is traced as it is; this is not."),
            ("custom_op", "Keep NumPy inside of an operator."),
            _LEAVE,
        ),
        ids=("GB0293", "GB0294", "GB0290", "GB0157", "GB0158", "GB0250", "GB0185", "GB0105"),
        titles=(
            r"attempted to trace numpy",
            r"Unsupported ndarray",
            r"ndarray\.astype",
            r"failed to convert numpy\.ndarray",
            r"Tensor\.numpy\(\)",
        ),
        unfit=_NO_DATA,
    ),
    Kind(
        "function of a C extension",
        "a function that is not written in Python",
        (
            (
                "custom_op",
                "If what it gives depends on tensors: an operator around it, which the compiler runs as it is.",
            ),
            ("move", "If not: compute it before, and pass the result as an argument."),
            (
                "allow",
                "If it takes tensors and only calls torch operations on them: then compilers can see through it.",
            ),
            _LEAVE,
        ),
        ids=("GB0007", "GB0177"),
        titles=(r"Attempted to call function marked as skipped", r"can't handle functions not implemented in python"),
        context=r"likely a C extension or builtin",
    ),
    Kind(
        "object that is not written in Python",
        "an object or class that Dynamo cannot look into",
        (
            (
                "custom_op",
                "If what it gives depends on tensors: an operator around it, which the compiler runs as it is.",
            ),
            ("move", "If not: make it, or compute with it, before the compiled function, and pass the result."),
            _LEAVE,
        ),
        ids=("GB0156", "GB0147"),
        titles=(
            r"Unsupported method call",
            r"Unsupported function call",
            r"C-implemented special method",
            r"missing[ _](mp|sq|tp)_",
            r"unsupported __\w+__",
        ),
        context=r"UserDefined(Object|Class)Variable|<slot wrapper",
        unfit="nonstrict_trace and allow_in_graph run it on fake tensors: they fit only if it sees plain numbers.",
    ),
    Kind(
        "library that Dynamo leaves out",
        "a library whose code Dynamo does not trace, on purpose",
        (
            ("move", "Call it outside of the compiled function, if it need not be called each time."),
            ("nonstrict", "If it only computes with torch operations, call it from a function marked nonstrict_trace."),
            ("custom_op", "If it computes with the data of tensors: an operator around it."),
            _LEAVE,
        ),
        ids=("GB0007", "GB0008", "GB0009"),
        titles=(r"Attempted to (call|inline) function marked as skipped",),
    ),
    Kind(
        "context manager",
        "a with statement that Dynamo cannot enter or leave",
        (
            ("move", "Put the with statement around the call of the compiled function."),
            _LEAVE,
        ),
        ids=("GB0142", "GB0066", "GB0263", "GB0262"),
        titles=(r"Unsupported context manager", r"Graph break under GenericContextWrappingVariable"),
    ),
    Kind(
        "builtin",
        "a builtin of Python that cannot be traced with these arguments",
        (
            ("move", "If its result does not depend on tensors, compute it before, and pass it as an argument."),
            ("rewrite", "Otherwise write it differently: torch names the builtin and the types of its arguments."),
            _LEAVE,
        ),
        ids=("GB0059", "GB0191", "GB0141", "GB0176", "GB0569", "GB0193", "GB0213"),
        titles=(r"Failed to trace builtin operator", r"id\(\)", r"repr\(\) on", r"Unsupported call_id"),
    ),
    Kind(
        "builtin",
        "the code computes with id() of an object, which is not the same when the compiled code runs",
        (("rewrite", "Tell objects apart by something that lasts: an index, a name, an attribute."), _LEAVE),
        titles=(r"",),
        context=r"FakeIdVariable",
    ),
    Kind(
        "generator",
        "a generator that Dynamo does not trace by itself",
        (
            ("rewrite", "Compile the function that consumes it, or return a list."),
            _LEAVE,
        ),
        ids=("GB0003", "GB0120", "GB0253", "GB2549", "GB8335"),
        titles=(r"Attempt to trace generator", r"Unreachable sub-generator", r"infinite generator"),
    ),
    Kind(
        "exception",
        "Dynamo meets an exception while it traces",
        (
            (
                "rewrite",
                "If eager raises it too, fix that; a check of data belongs in torch._check or torch._assert_async.",
            ),
            ("move", "If it is handled here, let the code that raises it run before the compiled function."),
            _LEAVE,
        ),
        ids=("GB0088", "GB0089", "GB0111", "GB0112", "GB4315"),
        titles=(r"Observed exception", r"TypeError ", r"RuntimeError when making fake tensor call"),
    ),
    Kind(
        "autograd",
        "gradients are computed, or asked for, inside of the compiled function",
        (
            ("move", "Call backward() and requires_grad_() outside: compiled code is differentiated all the same."),
            ("setting", "torch._dynamo.config.trace_autograd_ops = True, where this torch has it."),
            _LEAVE,
        ),
        ids=("GB0123", "GB0125", "GB8985", "GB7324", "GB9186", "GB0108", "GB0206"),
        titles=(
            r"Unsupported Tensor\.(backward|requires_grad_)\(\)",
            r"requires_grad_\(\) intermediate",
            r"returning intermediate with requires_grad_",
            r"using `torch\.autograd\.grad`",
        ),
    ),
    Kind(
        "random number generator",
        "a torch.Generator is made or used inside of the compiled function",
        (
            ("move", "Draw the numbers, or seed the default generator, before the compiled function."),
            ("custom_op", "An operator that draws, seeded by a number."),
            _LEAVE,
        ),
        ids=("GB7650",),
        titles=(r"torch\.Generator method",),
    ),
    Kind(
        "object made on the way",
        "an object is made that cannot be part of a graph",
        (
            ("move", "Make it before, and pass it as an argument or keep it in a global variable."),
            _LEAVE,
        ),
        ids=("GB0363",),
        titles=(r"An opaque object was created",),
    ),
    Kind(
        "unsupported tensor",
        "a kind of tensor that torch.compile does not handle, or a change of its storage",
        (
            ("move", "Do what needs it before or after the compiled function."),
            ("custom_op", "An operator that takes and returns ordinary tensors, and has the others inside."),
            _LEAVE,
        ),
        ids=("GB0015", "GB0277", "GB0374", "GB0016", "GB0126", "GB0128", "GB4198"),
        titles=(
            r"Attempted to wrap (sparse|strided)",
            r"Sparse tensor",
            r"Unsupported Tensor\.(resize|set|share|sparse)",
            r"Attempted to copy\.deepcopy a tensor",
        ),
    ),
)

#: What is said of a kind that the table does not know.
UNKNOWN = Kind(
    "other",
    "see torch's reason and hints",
    (
        ("rewrite", "Write the line so that Dynamo can trace it: torch's hints say what it stumbles over."),
        ("move", "If it does not depend on tensors, do it before the compiled function."),
        ("custom_op", "If it computes with the data of tensors in a way that torch cannot see, make it an operator."),
        _LEAVE,
    ),
)


def kind_of(found: Any, line: str = "") -> Kind:
    """The kind of a `graphbreaks.Break` whose line of code is ``line``, or `UNKNOWN`."""
    number = re.search(r"/gb(\d+)\.html", found.link)
    for kind in KINDS:
        named = (number is not None and f"GB{number.group(1)}" in kind.ids) or any(
            re.match(title, found.kind) for title in kind.titles
        )
        if named and re.search(kind.context, found.context) and re.search(kind.source, line):
            return kind
    return UNKNOWN


def apart(kind: Kind) -> Kind:
    """The kind of a line that has nothing to do with tensors: moving it comes first, and an operator is no help."""
    first = (
        "move",
        "The line neither takes nor gives a tensor: compute it before, and pass the result as an argument.",
    )
    rest = tuple(a for a in kind.advice if a[0] not in ("move", "custom_op", "allow"))
    return dataclasses.replace(kind, advice=(first, *rest), unfit="")
