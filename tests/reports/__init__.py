"""Tests of opcheck_suite.reports."""
