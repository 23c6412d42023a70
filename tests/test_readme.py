"""What is generated from the checks is what is committed."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from opcheck_suite import cli, documents, registry
from opcheck_suite.reports import catalogue

ROOT = pathlib.Path(__file__).parent.parent


def test_the_readme_holds_the_table_of_checks():
    text = (ROOT / "README.md").read_text()
    assert documents.readme(text) == text


def test_the_page_of_checks_is_up_to_date():
    assert (ROOT / "docs" / "checks.md").read_text() == catalogue.pages(registry.all_checks())


def test_a_readme_is_rewritten_between_its_marks_only():
    before = f"# Title\n\n{documents.BEGIN}\nbygone\n{documents.END}\n\nafter\n"
    made = documents.readme(before)
    assert made.startswith(f"# Title\n\n{documents.BEGIN}\n| check")
    assert made.endswith(f"\n{documents.END}\n\nafter\n")
    assert "bygone" not in made
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


def test_the_failing_example_is_what_the_suite_prints():
    shown = (ROOT / "README.md").read_text().partition("<!-- example")[2].partition("```text\n")[2].partition("```")[0]
    command = [sys.executable, "-m", "opcheck_suite.cli", "run", "examples/softsign_specs.py", "--tier", "quick"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert printed.returncode == 1, printed.stderr
    assert shown in printed.stdout


def test_torch_s_own_checks_pass_the_failing_example():
    """What the README says of them."""
    code = (
        "import torch; from softsign_specs import softsign; from opcheck_suite.checks.opcheck.utils import UTILS;"
        "torch.library.opcheck(softsign, (torch.randn(3, 4),), test_utils=UTILS)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "examples", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_finding_in_a_source_is_what_lint_prints(scratch, capsys):
    shown = (ROOT / "README.md").read_text().partition("<!-- lint")[2].partition("```text\n")[2].partition("```")[0]
    (scratch / "my_ops").mkdir()
    fake = "@torch.library.impl_abstract('my_ops::scale')\ndef scale(x): ...\n"
    (scratch / "my_ops" / "fakes.py").write_text("import torch\n" + 4 * "\n" + fake)
    assert cli.main(["lint", "my_ops"]) == 1
    assert capsys.readouterr().out == shown
