import re
import subprocess
import sys
from pathlib import Path

import gridwright

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference" / "python.html").read_text("utf-8")
    modules = {"etc"}  # what is in it is there
    for name in set(gridwright.__all__) - modules - {"__version__"}:
        assert re.search(rf'id="gridwright\.[\w.]+\.{name}"', page), name
    assert "cvb_transposed" in page
    assert "The book: the live state" in (tmp_path / "code" / "modules.html").read_text("utf-8")
    for page_file in tmp_path.rglob("*.html"):
        assert "fonts.googleapis" not in page_file.read_text("utf-8")
