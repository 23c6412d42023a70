"""Tests of opcheck_suite.inputs."""
