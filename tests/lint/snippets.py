"""Sources for `opcheck lint`, as data. A comment ``<- id`` ends each line that has a finding; other lines have none."""

from __future__ import annotations

#: Row of the table of deprecated names -> a source that uses it, and nothing else that has a row of its own.
APIS = {
    "torch._custom_op": """
from torch import _custom_op  # <- lint.custom_op
from torch._custom_op import impl  # <- lint.custom_op
import torch._custom_op.autograd  # <- lint.custom_op
impl.parse_qualname("m::f")  # <- lint.custom_op
""",
    "torch._custom_op.impl.custom_op": """
import torch._custom_op.impl as x  # <- lint.custom_op

@x.custom_op("m::f")  # <- lint.custom_op
def f(x): ...
""",
    "torch._custom_op.impl.CustomOp": """
import torch

def kind(op: torch._custom_op.impl.CustomOp):  # <- lint.custom_op
    return op
""",
    "torch._custom_op.impl.get_ctx": """
from torch._custom_op.impl import get_ctx  # <- lint.custom_op
size = get_ctx().new_dynamic_size()  # <- lint.custom_op
""",
    "torch._custom_op.impl.infer_schema": """
from torch._custom_op.impl import infer_schema as schema_of  # <- lint.custom_op
""",
    "torch._custom_ops": """
import torch._custom_ops as ops  # <- lint.custom_op
ops._destroy("m::f")  # <- lint.custom_op
""",
    "torch._custom_ops.custom_op": """
import torch

@torch._custom_ops.custom_op("m::f")  # <- lint.custom_op
def f(x): ...
""",
    "torch._custom_ops.impl": """
from torch._custom_ops import impl  # <- lint.custom_op

@impl("m::f", device_types="cpu")  # <- lint.custom_op
def f(x): ...
""",
    "torch._custom_ops.impl_abstract": """
from torch._custom_ops import impl_abstract  # <- lint.custom_op
""",
    "torch._custom_ops.impl_save_for_backward": """
from torch._custom_ops import impl_save_for_backward  # <- lint.custom_op
""",
    "torch._custom_ops.impl_backward": """
from torch._custom_ops import impl_backward  # <- lint.custom_op
""",
    "torch._custom_ops.get_ctx": """
from torch._custom_ops import get_ctx  # <- lint.custom_op
""",
    "torch.library.impl_abstract": """
import importlib
import torch
import torch.library as tl
from torch import library
from torch.library import impl_abstract as fake  # <- lint.impl_abstract
from torch.library import *

lib = torch.library
abstract = lib.impl_abstract  # <- lint.impl_abstract
dynamic = getattr(torch.library, "impl_" "abstract")  # <- lint.impl_abstract
late = importlib.import_module("torch.library").impl_abstract  # <- lint.impl_abstract

@tl.impl_abstract("m::f")  # <- lint.impl_abstract
def f(x):
    from torch.library import impl_abstract  # <- lint.impl_abstract
    impl_abstract("m::g", f)  # <- lint.impl_abstract

class Registers:
    register = library.impl_abstract  # <- lint.impl_abstract

    def go(self):
        fake("m::h")(self.go)  # <- lint.impl_abstract
        (lib
         .impl_abstract("m::i"))
        abstract("m::j", self.go)  # <- lint.impl_abstract

impl_abstract("m::k", f)  # <- lint.impl_abstract
""".replace("        (lib\n", "        (lib  # <- lint.impl_abstract\n"),
    "torch.library.get_ctx().create_unbacked_symint": """
import torch
from torch.library import get_ctx

def fake(x):
    ctx = torch.library.get_ctx()
    n = ctx.create_unbacked_symint()  # <- lint.create_unbacked_symint
    m = get_ctx().create_unbacked_symint(min=0)  # <- lint.create_unbacked_symint
    if (again := get_ctx()):
        again.create_unbacked_symint  # <- lint.create_unbacked_symint
""",
    "torch::Library::impl_abstract_pystub": """
TORCH_LIBRARY_FRAGMENT(mine, m) {
  m.impl_abstract_pystub("mine.ops");  // <- lint.impl_abstract_pystub
  library->impl_abstract_pystub(  // <- lint.impl_abstract_pystub
      "mine.ops", "//mine:ops");
  m.set_python_module("mine.ops");
  m.def("f(Tensor x) -> Tensor");  // m.impl_abstract_pystub("mine.ops")
}
""",
    "torch._library.capture_triton": """
import torch
torch._library.capture_triton(kernel)[grid](x)  # <- lint.capture_triton
""",
    "torch._library.triton.capture_triton": """
from torch._library.triton import capture_triton  # <- lint.capture_triton
""",
    "torch._library.custom_ops.custom_op": """
from torch._library.custom_ops import CustomOpDef
from torch._library.custom_ops import custom_op  # <- lint.private
""",
    "torch._library.infer_schema.infer_schema": """
from torch._library.infer_schema import (
    infer_schema,  # <- lint.private
    parse_return,
)
""",
    "torch._library.triton_op": """
import torch
@torch._library.triton_op("m::f", mutates_args=())  # <- lint.private
def f(x): ...
""",
    "torch._library.triton.triton_op": """
from torch._library.triton import triton_op  # <- lint.private
""",
    "torch._library.wrap_triton": """
from torch._library import register_fake_class, wrap_triton  # <- lint.private
""",
    "torch._library.triton.wrap_triton": """
from torch._library.triton import wrap_triton  # <- lint.private
""",
    "torch.library.Library()._register_fake": """
import torch
from torch.library import Library
from typing import Optional

LIB = Library("m", "FRAGMENT")
LIB._register_fake("f", f)  # <- lint.private

def register(name, fn, lib: Library | None = None, other: Optional["Library"] = None):
    chosen = lib or LIB
    chosen._register_fake(name, fn)  # <- lint.private
    other._register_fake(name, fn)  # <- lint.private

class Holder:
    def __init__(self):
        self.lib = torch.library.Library("m", "FRAGMENT")
        self.lib._register_fake("g", f)  # <- lint.private

with torch.library._scoped_library("m", "FRAGMENT") as scoped:
    scoped._register_fake("h", f)  # <- lint.private
""",
    "torch.library.Library()._register_torch_dispatch_rule": """
import torch
lib = torch.library.Library("m", "FRAGMENT")
lib._register_torch_dispatch_rule("f", Mode, f)  # <- lint.private
""",
    "torch.testing._internal.optests.opcheck": """
import torch.testing._internal.optests as optests
optests.opcheck(op, args)  # <- lint.private

@optests.generate_opcheck_tests()
class Tests: ...
""",
    "torch.testing._internal.optests.generate_tests.opcheck": """
from torch.testing._internal.optests.generate_tests import opcheck  # <- lint.private
""",
}

PYTHON_NAMESPACES = {
    "by every function": """
import torch
torch.library.custom_op("aten::f", fn, mutates_args=())  # <- lint.reserved_namespace
torch.library.custom_op(name="prims::f", mutates_args=())  # <- lint.reserved_namespace
torch.library.triton_op("torch::f", fn, mutates_args=())  # <- lint.reserved_namespace
torch.library.define("pytorch::f", "(Tensor x) -> Tensor")  # <- lint.reserved_namespace
torch.library.define(qualname="at::f", schema="() -> ()")  # <- lint.reserved_namespace
lib = torch.library.Library("prim", "DEF")  # <- lint.reserved_namespace
lib = torch.library.Library(kind="FRAGMENT", ns="ATen")  # <- lint.reserved_namespace
with torch.library._scoped_library("aten", "FRAGMENT") as lib:  # <- lint.reserved_namespace
    pass
mine = torch.library.Library("mine", "FRAGMENT")
mine.define("aten::f(Tensor x) -> Tensor")  # <- lint.reserved_namespace
""",
    "however the name is put together": '''
import torch
from functools import partial

NS = "aten"
class Config:
    NAMESPACE: str = "prims"
KIND = "DEF"
op = partial(torch.library.custom_op, mutates_args=())

torch.library.custom_op("at" + "en" + "::f", mutates_args=())  # <- lint.reserved_namespace
torch.library.custom_op("at" "en::f", mutates_args=())  # <- lint.reserved_namespace
torch.library.custom_op(f"{NS}::f", mutates_args=())  # <- lint.reserved_namespace
torch.library.custom_op(NS + "::" + name, mutates_args=())  # <- lint.reserved_namespace
torch.library.custom_op(f"aten::{name}", mutates_args=())  # <- lint.reserved_namespace
torch.library.custom_op(f"{Config.NAMESPACE}::f", mutates_args=())  # <- lint.reserved_namespace
torch.library.Library(NS, KIND)  # <- lint.reserved_namespace
op(
    """aten::f"""  # <- lint.reserved_namespace
)

def inside(name="f"):
    local = NS
    torch.library.define(local + "::f", "() -> ()")  # <- lint.reserved_namespace
''',
    "what is no definition": '''
"""torch.library.custom_op("aten::f")"""
import torch
lib = torch.library.Library("aten", "IMPL")
lib = torch.library.Library("aten", "IMPL", "Meta")
lib = torch.library.Library("_", "IMPL")
torch.library.register_fake("aten::f", fn)
torch.library.register_kernel("aten::f", "cuda", fn)
torch.library.impl("aten::f", "CPU")
torch.ops.aten.add(x, y)
torch.library.define(lib, "f() -> ()")
''',
    "names that are no more than like": """
import torch
torch.library.custom_op("atensor::f", mutates_args=())
torch.library.custom_op("mine::aten", mutates_args=())
torch.library.custom_op("mine::torch::f", mutates_args=())
torch.library.Library("at" + suffix, "DEF")
torch.library.custom_op("at" + suffix, mutates_args=())
torch.library.custom_op(f"{unknown}aten::f", mutates_args=())
mylib.custom_op("aten::f")

def shadowed(torch):
    torch.library.custom_op("aten::f")

def rebound():
    NS = "aten"
    NS = "mine"
    torch.library.define(NS + "::f", "() -> ()")

def looped():
    for ns in ("aten", "mine"):
        torch.library.define(ns + "::f", "() -> ()")

def added(ns):
    at = "at"
    at += "en"
    torch.library.define(at + "::f", "() -> ()")
    torch.library.define(f"{ns!r}::f", "() -> ()")
    [torch.library.define(at, "") for at in ns]
""",
}

CPP_NAMESPACES = {
    "by every macro": """
TORCH_LIBRARY(aten, m) {}  // <- lint.reserved_namespace
TORCH_LIBRARY_FRAGMENT(prims, m) {}  // <- lint.reserved_namespace
STABLE_TORCH_LIBRARY(torch, m) {}  // <- lint.reserved_namespace
STABLE_TORCH_LIBRARY_FRAGMENT(at, m) {}  // <- lint.reserved_namespace
TORCH_LIBRARY(  // of several lines
    pytorch,  // <- lint.reserved_namespace
    m) {
}
TORCH_LIBRARY(mine, m) {
  m.def("aten::f(Tensor x) -> Tensor");  // <- lint.reserved_namespace
  m.def(TORCH_SELECTIVE_SCHEMA("pr" "im::f(int[] x) -> ()"), {at::Tag::core});  // <- lint.reserved_namespace
  m.def(R"(aten::g(Tensor x) -> Tensor)");  // <- lint.reserved_namespace
}
static auto registry = torch::RegisterOperators()
    .op("aten::f", &f)  // <- lint.reserved_namespace
    .op("mine::f", &f);
torch::RegisterOperators("aten::g", &g);  // <- lint.reserved_namespace
""",
    "through macros": """
#define NS aten
#define EXPAND(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
#define SECOND(M, NAME) \\
  EXPAND(NAME, M)
#define ALL TORCH_LIBRARY_FRAGMENT(prims, m)  // <- lint.reserved_namespace
EXPAND(NS, m) {}  // <- lint.reserved_namespace
SECOND(m, aten) {}  // <- lint.reserved_namespace
TORCH_LIBRARY_FRAGMENT(NS, m) {}  // <- lint.reserved_namespace
TORCH_LIBRARY(NS, m) {}
EXPAND(mine, m) {}
""",
    "what is no definition": r"""
// TORCH_LIBRARY(aten, m) {} \
   TORCH_LIBRARY(aten, m) {}
/* TORCH_LIBRARY(aten, m) {}
   TORCH_LIBRARY(aten, m) {} */
const char* text = "TORCH_LIBRARY(aten, m) \" \
TORCH_LIBRARY(aten, m)";
const char* raw = R"--(TORCH_LIBRARY(aten, m) " )" TORCH_LIBRARY(aten, m))--";
const char quote = '"'; int million = 1'000'000; const char other = '\'';
TORCH_LIBRARY_IMPL(aten, CUDA, m) { m.impl("add.Tensor", add); m.impl("aten::add", add); }
STABLE_TORCH_LIBRARY_IMPL(aten, CUDA, m) {}
TORCH_LIBRARY(atensor, m) { m.def("f(str s=\"aten::\") -> ()"); m.def("torch_f(Tensor x) -> Tensor"); }
TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("f(Tensor x) -> Tensor", &at::relu); }
#if 0
TORCH_LIBRARY(aten, m) {}
# if defined(X)
TORCH_LIBRARY(aten, m) {}
# endif
#else
TORCH_LIBRARY_FRAGMENT(mine, m) {}
#endif
#error don't define TORCH_LIBRARY(aten, m)
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("at", &f); }
""",
}

#: Code for a torch that has no other name.
OLD_TORCH = {
    "a look at the module": """
import torch
if hasattr(torch.library, "register_fake"):
    register_fake = torch.library.register_fake
elif hasattr(torch.library, "impl_abstract"):
    register_fake = torch.library.impl_abstract
register_fake("m::f", f)
fake = torch.library.register_fake if hasattr(torch.library, "register_fake") else torch.library.impl_abstract
HAS = hasattr(torch, "library") and hasattr(torch.library, "register_fake")
if not HAS:
    torch.library.impl_abstract("m::g", f)
other = getattr(torch.library, "register_fake", None) or torch.library.impl_abstract  # <- lint.impl_abstract
""",
    "an import that fails": """
try:
    from torch.library import register_fake
except ImportError:
    from torch.library import impl_abstract as register_fake

@register_fake("m::f")
def f(x): ...
""",
    "a version": """
import torch
from packaging.version import Version, parse
TORCH_2_4 = Version(torch.__version__) >= Version("2.4")
if TORCH_2_4:
    torch.library.register_fake("m::f", f)
else:
    torch.library.impl_abstract("m::f", f)
if parse(torch.__version__) < parse("2.4"):
    torch.library.impl_abstract("m::f", f)
else:
    torch.library.impl_abstract("m::f", f)  # <- lint.impl_abstract
if torch_version_at_least("2.4.0"):
    torch.library.impl_abstract("m::f", f)  # <- lint.impl_abstract
else:
    torch.library.impl_abstract("m::f", f)
if "2.4" > torch.__version__:
    torch.library.impl_abstract("m::f", f)

def register(name, fn):
    if TORCH_2_4:
        return torch.library.register_fake(name, fn)
    return torch.library.impl_abstract(name, fn)
""",
    "what is no guard": """
import sys
import torch
if hasattr(torch.library, "impl_abstract"):
    torch.library.impl_abstract("m::f", f)  # <- lint.impl_abstract
if sys.version_info >= (3, 11):
    pass
else:
    torch.library.impl_abstract("m::f", f)  # <- lint.impl_abstract
try:
    import triton
except ImportError:
    torch.library.impl_abstract("m::f", f)  # <- lint.impl_abstract
if hasattr(torch.library, "register_fake"):
    pass
else:
    torch.library.custom_op("aten::f", mutates_args=())  # <- lint.reserved_namespace
""",
}

#: What looks like a deprecated name, and is none.
LOOKALIKES = {
    "others' names": '''
"""torch.library.impl_abstract"""
import torch
from . import library
from mine.library import impl_abstract
library.impl_abstract("m::f")
impl_abstract("m::f")
torch.library.impl_abstract = None
hasattr(torch.library, "impl_abstract")
shape_env.create_unbacked_symint()
ctx = make_context()
ctx.create_unbacked_symint()
self._register_fake("f", f)
torch._custom_operator
"torch._custom_op.impl"
torch.library.get_ctx().new_dynamic_size()
''',
    "names that are made new": """
from torch.library import impl_abstract as old  # <- lint.impl_abstract

def f(old):
    return old("m::f")

class C:
    old = 1
    def g(self):
        return [old for old in self]

def h():
    global later
    later = torch
    def old(): ...
    return old()

try:
    pass
except ValueError as impl_abstract:
    print(impl_abstract)
""",
    "several meanings": """
import torch
fake = torch.library.impl_abstract  # <- lint.impl_abstract
if mine:
    fake = mine.register
fake("m::f")
loop = loop + 1
loop("m::f")
""",
}
