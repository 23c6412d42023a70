"""Checks of family fake."""
