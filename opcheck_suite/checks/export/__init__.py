"""Checks of family export."""
