"""How long property tests look. `OPCHECK_EXAMPLES=20000` makes them longer."""

from __future__ import annotations

import os

from hypothesis import settings

#: Settings of a property. Nothing here depends on the time of day, on other tests, or on what ran before.
EXAMPLES = int(os.environ.get("OPCHECK_EXAMPLES", "500"))
PROPERTY = settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)
