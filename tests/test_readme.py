"""What is generated from the checks is what is committed."""

from __future__ import annotations

import pathlib

import pytest

from opcheck_suite import documents, registry
from opcheck_suite.reports import catalogue

ROOT = pathlib.Path(__file__).parent.parent


def test_the_readme_holds_the_table_of_checks():
    text = (ROOT / "README.md").read_text()
    assert documents.readme(text) == text


def test_the_page_of_checks_is_up_to_date():
    assert (ROOT / "docs" / "checks.md").read_text() == catalogue.pages(registry.all_checks())


def test_a_readme_is_rewritten_between_its_marks_only():
    before = f"# Title\n\n{documents.BEGIN}\nold\n{documents.END}\n\nafter\n"
    made = documents.readme(before)
    assert made.startswith(f"# Title\n\n{documents.BEGIN}\n| check")
    assert made.endswith(f"\n{documents.END}\n\nafter\n")
    assert "old" not in made
    assert all(f"`{check.id}`" in made for check in registry.all_checks())
    assert documents.readme(made) == made


@pytest.mark.parametrize("text", ["", documents.BEGIN, f"{documents.BEGIN} {documents.END} {documents.END}"])
def test_a_readme_without_its_marks_is_refused(text):
    with pytest.raises(ValueError, match="once each"):
        documents.readme(text)


def test_the_documents_are_written_below_a_root(tmp_path):
    (tmp_path / "README.md").write_text(f"{documents.BEGIN}\n{documents.END}\n")
    documents.main(tmp_path)
    assert "`fake.strides`" in (tmp_path / "README.md").read_text()
    assert (tmp_path / "docs" / "checks.md").read_text() == catalogue.pages(registry.all_checks())
