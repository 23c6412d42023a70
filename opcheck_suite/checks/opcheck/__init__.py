"""Checks of family opcheck."""
