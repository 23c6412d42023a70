"""Checks of family registration."""
