"""Documents in HTML: whole, escaped, with nothing outside of themselves."""

from pathlib import Path

import pytest

from gridwright.compiler.computer import computer
from gridwright.model import InputError
from gridwright.report.document import (
    details,
    made,
    paragraph,
    picture,
    section,
    table,
    write_document,
)


def test_words_are_escaped() -> None:
    bad = "<script>alert('x')</script> & \"y\""
    for text in (
        paragraph(bad),
        section(bad, []),
        details(bad, []),
        table(bad, [bad], [[bad]]),
        picture(lambda path: path.touch(), bad, shows=bad),
    ):
        assert "<script" not in text
        assert "&lt;script&gt;" in text


def test_a_table_knows_its_numbers_and_its_verdicts() -> None:
    text = table(
        "Policies", ["policy", ">mean", "verdict"], [["fcfs", "1.5", "not run"]], ["not run"]
    )
    assert 'role="region" aria-label="Policies" tabindex="0"' in text
    assert '<th scope="col" class="number">mean</th>' in text
    assert '<td class="number">1.5</td>' in text
    assert '<td class="not-run">not run</td>' in text
    with pytest.raises(ValueError, match="zip"):
        table("", ["one"], [["one", "two"]])


def test_pictures_are_inside(tmp_path: Path) -> None:
    def draw(path: Path) -> None:
        path.write_bytes(b"<svg/>")

    text = picture(draw, "a picture")
    assert 'src="data:image/svg+xml;base64,PHN2Zy8+"' in text
    assert '<img alt="a picture"' in text
    assert '<img alt="a dog"' in picture(draw, "a picture", shows="a dog")
    assert "data:image/png" in picture(lambda path: path.touch(), "", vector=False)


def test_a_document_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.html"

    def broken() -> object:
        yield "<p>one</p>"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_document(path, "title", broken())  # type: ignore[arg-type]
    assert not path.exists()
    write_document(path, "a < b", [made([("seed", "1")])])
    text = path.read_text("utf-8")
    assert "<title>a &lt; b</title>" in text
    assert "numpy" in text
    assert computer() in text
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(InputError, match="cannot be written"):
        write_document(tmp_path / "no" / "r.html", "title", [])
