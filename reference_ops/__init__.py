"""Operators the suite proves itself on: small, real and conformant ones, and planted faults."""
