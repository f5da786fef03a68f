"""mypy finds nothing in the package, strictly, and a program that uses it is checked against its annotations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tarn

pytest.importorskip("mypy", reason="mypy is not installed")
SOURCE = Path(os.environ.get("TARN_SOURCE_DIR", Path(__file__).parents[2]))


def test_the_package_and_its_use(tmp_path: Path) -> None:
    use = tmp_path / "use.py"
    use.write_text(
        "import tarn\n"
        "run = tarn.Run('runs/model')\n"
        "texts: list[str] = run.translate(['Ein Hund'])\n"
        "wrong: int = run.translate(['Ein Hund'], details=True)\n"
    )
    package = Path(tarn.__file__).parent
    command = [sys.executable, "-m", "mypy", "--config-file", str(SOURCE / "pyproject.toml")]
    command += ["--cache-dir", str(tmp_path / "cache"), str(package), str(use)]
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    # The one mistake is found, and nothing else.
    assert done.returncode == 1 and done.stdout.count("error:") == 1 and "use.py:4" in done.stdout, done.stdout
