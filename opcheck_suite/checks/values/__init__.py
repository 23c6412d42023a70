"""Checks of family values."""
