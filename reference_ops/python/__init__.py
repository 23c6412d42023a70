"""Conformant operators written in Python, one module a theme; `specs.SPECS` is all of their specs.

Each op follows one pattern: a function ``_..._result`` refuses what the op does not support and allocates the
outputs. The kernel calls it and fills the outputs; the fake kernel is that very function. What the two say about
shapes, strides, dtypes, devices and refusals then cannot drift apart.
"""
