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


def mypy(tmp_path: Path, *words: str | Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "mypy", "--config-file", str(SOURCE / "pyproject.toml")]
    command += ["--cache-dir", str(tmp_path / "cache"), *map(str, words)]
    environment = {**os.environ, "MYPYPATH": str(Path(tarn.__file__).parents[1])}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout


def test_the_package_and_its_use(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(
        "import tarn\n"
        "run = tarn.Run('runs/model')\n"
        "texts: list[str] = run.translate(['Ein Hund'])\n"
        "wrong: int = run.translate(['Ein Hund'], details=True)\n"
    )
    code, said = mypy(tmp_path, Path(tarn.__file__).parent)
    assert code == 0, said
    code, said = mypy(tmp_path, tmp_path / "use.py")
    assert code == 1 and said.count("error:") == 1 and "use.py:4" in said, said
