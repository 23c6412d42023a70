"""Checks of family autograd."""
