"""mypy and pyright find nothing in the package, strictly, and a program that uses it is checked against its annotations.

Of what Python 3.9 does not have, the package uses nothing that its text shows: syntax, and unions of types that are computed.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tarn

SOURCE = Path(os.environ.get("TARN_SOURCE_DIR", Path(__file__).parents[2]))
PACKAGE = Path(tarn.__file__).parent
USE = (
    "import tarn\n"
    "run = tarn.Run('runs/model')\n"
    "texts: list[str] = run.translate(['Ein Hund'])\n"
    "wrong: int = run.translate(['Ein Hund'], details=True)\n"
)


TYPES = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)


def unions(node: ast.AST) -> list[int]:
    """The lines in which `|` stands between what may be types, except in annotations, which are not computed."""
    found = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found += [node.lineno] * (isinstance(node.left, TYPES) and isinstance(node.right, TYPES))
    for name, inside in ast.iter_fields(node):
        for child in inside if isinstance(inside, list) else [inside]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                found += unions(child)
    return found


def test_python_39() -> None:
    assert unions(ast.parse("def f(x: int | None) -> int | None: ...\nText = str | bytes | None")) == [2]
    for path in PACKAGE.glob("*.py"):
        tree = ast.parse(path.read_text(), str(path), feature_version=(3, 9))
        assert not unions(tree), f"{path.name}: lines {unions(tree)}"


def test_the_package_and_its_use(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    use = tmp_path / "use.py"
    use.write_text(USE)
    command = [sys.executable, "-m", "mypy", "--config-file", str(SOURCE / "pyproject.toml")]
    command += ["--cache-dir", str(tmp_path / "cache"), str(PACKAGE), str(use)]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    # The one mistake is found, and nothing else.
    assert done.returncode == 1 and done.stdout.count("error:") == 1 and "use.py:4" in done.stdout, done.stdout


def test_pyright_agrees(tmp_path: Path) -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    pyright = [sys.executable, "-m", "pyright"]
    if subprocess.run([*pyright, "--version"], capture_output=True).returncode != 0:
        pytest.skip("pyright cannot be run: its package fetches the program itself at its first use")
    shutil.copytree(PACKAGE, tmp_path / "tarn", ignore=shutil.ignore_patterns("*.so*", "lib"))
    shutil.copy(SOURCE / "pyproject.toml", tmp_path)
    (tmp_path / "use.py").write_text(USE)
    command = [*pyright, "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [(Path(one["file"]).name, one["range"]["start"]["line"]) for one in found] == [("use.py", 3)], done.stdout
