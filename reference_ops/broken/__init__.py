"""Operators with one planted fault each, which prove that every check finds what it is for.

A module a family of checks; `faults` has all of them as one table. The ops of `native` are written in C++ and are not
part of that table.
"""
