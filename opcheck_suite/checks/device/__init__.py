"""Checks of family device."""
