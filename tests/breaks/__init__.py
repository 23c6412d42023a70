"""Graph breaks of a function."""
