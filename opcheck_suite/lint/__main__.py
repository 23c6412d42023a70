#!/usr/bin/env python3
"""`opcheck lint` by itself: ``python -m opcheck_suite.lint``, and the hook of pre-commit, which installs nothing."""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - pre-commit takes whatever python3 there is
    sys.exit("opcheck lint needs Python 3.11 or newer")
if not __package__:  # run as a file: what it imports is two folders up
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import argparse

from opcheck_suite.lint import command
from opcheck_suite.registry import UsageError


def main() -> int:
    """Run it. Returns the exit status: 0 no findings, 1 findings, 2 usage."""
    parser = argparse.ArgumentParser(prog="opcheck lint", epilog=command.EPILOG)
    command.add_arguments(parser)
    try:
        text, clean = command.run(parser.parse_args())
    except UsageError as error:
        print(f"opcheck: {error}", file=sys.stderr)
        return 2
    if text:
        print(text)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
