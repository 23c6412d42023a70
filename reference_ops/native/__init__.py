"""Conformant operators in C++ and CUDA (``csrc/``) and in Triton.

The C++ is compiled when an op is first needed, see `reference_ops.native._build`; ``python -m reference_ops.native``
compiles everything at once and says what it did. Where that is impossible the specs say why, and are skipped.
"""
