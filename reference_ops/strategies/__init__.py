"""Six functions that break the graph, each under every strategy against that.

``python -m reference_ops.strategies`` compiles all of them, and writes what came of it to
``docs/compile-strategies.md``.
"""
