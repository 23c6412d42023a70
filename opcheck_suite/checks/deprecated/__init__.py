"""Checks of family deprecated."""
