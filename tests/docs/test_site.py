import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference" / "python.html").read_text("utf-8")
    for name in ("gridwright.model.System", "gridwright.allocation.allocate", "cvb_transposed"):
        assert name in page
    for page_file in tmp_path.rglob("*.html"):
        assert "fonts.googleapis" not in page_file.read_text("utf-8")
