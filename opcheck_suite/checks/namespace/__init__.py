"""Checks of family namespace."""
