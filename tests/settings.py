"""How long property tests look, and what they keep quiet. `OPCHECK_EXAMPLES=20000` makes them longer."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator

from hypothesis import settings

#: Settings of a property. Nothing here depends on the time of day, on other tests, or on what ran before.
EXAMPLES = int(os.environ.get("OPCHECK_EXAMPLES", "500"))
PROPERTY = settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)


@contextlib.contextmanager
def silent(logger: str) -> Iterator[None]:
    """Keep one of torch's logs from being written, and from being gathered by pytest."""
    log = logging.getLogger(logger)
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was
