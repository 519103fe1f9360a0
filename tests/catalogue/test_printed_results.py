"""What is known of the printed results."""

from pathlib import Path

from gridwright.catalogue import errata

ROOT = Path(__file__).parents[2]


def test_every_erratum_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "errata.md").read_text("utf-8")
    assert len(errata()) == 33
    assert all(each.text in page for each in errata())
