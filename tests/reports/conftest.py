"""A catalogue of its own, so that goldens do not depend on the wording of the checks there are."""

from __future__ import annotations

import pytest

from opcheck_suite import registry
from opcheck_suite.model import Check, Outcome, Tier

IDS = {
    "namespace.reserved": Tier.STATIC,
    "registration.name": Tier.STATIC,
    "values.runs": Tier.QUICK,
    "values.reference": Tier.QUICK,
    "schema.mutation": Tier.QUICK,
    "fake.runs": Tier.QUICK,
    "compile.parity": Tier.STANDARD,
}


def _check(id: str, tier: Tier) -> Check:
    return Check(
        id=id,
        title=f"Title of {id}",
        what=f"What {id} does.",
        why=f"Why {id} matters.",
        fix=f"How to fix what {id} finds.",
        docs=f"https://docs.pytorch.org/{id}",
        tier=tier,
        severity=Outcome.FAIL,
        since="0.1.0",
        fn=print,
        scope="op" if tier is Tier.STATIC else "case",
    )


@pytest.fixture
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue holds seven checks made here."""
    registry.all_checks()
    monkeypatch.setattr(registry, "_CHECKS", {id: _check(id, tier) for id, tier in IDS.items()})
