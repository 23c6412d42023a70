"""Checks of family transform."""
