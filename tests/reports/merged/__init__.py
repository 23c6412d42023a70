"""Tests of the matrix of several reports."""
