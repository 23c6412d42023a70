"""Checks of family compile."""
