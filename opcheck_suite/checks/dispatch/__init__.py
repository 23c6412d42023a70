"""Checks of family dispatch."""
