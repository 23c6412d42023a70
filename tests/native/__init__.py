"""Tests of how the native reference ops are built."""
