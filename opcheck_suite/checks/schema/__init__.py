"""Checks of family schema."""
