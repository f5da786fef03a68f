"""The interface that is made of the headers is the library's: sizes and places as the compiler has them."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tarn
from tarn import _binding

SOURCE = Path(os.environ.get("TARN_SOURCE_DIR", Path(__file__).parents[2]))
COMPILER = shutil.which("cc")


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_structures_have_the_compilers_layout(tmp_path: Path) -> None:
    lines = ['#include "tarn/tarn.h"', '#include "tarn/lab/lab.h"', "#include <stddef.h>"]
    checked = 0
    for name, kind in vars(_binding).items():
        if not (isinstance(kind, type) and issubclass(kind, ctypes.Structure) and getattr(kind, "_fields_", None)):
            continue
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");')
        for field, _ in kind._fields_:  # type: ignore[misc]
            place = getattr(kind, field)
            lines.append(f'_Static_assert(offsetof({name}, {field}) == {place.offset}, "{name}.{field}");')
            checked += 1
    for name, value in vars(_binding).items():
        if name.startswith("TARN_") and isinstance(value, int):
            lines.append(f'_Static_assert({name} == {value}, "{name}");')
    assert checked > 300
    (tmp_path / "layout.c").write_text("\n".join(lines) + "\n")
    command = [COMPILER, "-std=c11", "-fsyntax-only", f"-I{SOURCE / 'include'}", str(tmp_path / "layout.c")]
    subprocess.run(command, check=True)  # type: ignore[arg-type]


def import_elsewhere(tmp_path: Path, library: Path | None) -> str:
    """What importing a copy of the package with that library says."""
    package = tmp_path / "tarn"
    shutil.copytree(Path(tarn.__file__).parent, package, ignore=shutil.ignore_patterns("libtarn*", "__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("TARN_LIBRARY", None)
    if library is not None:
        environment["TARN_LIBRARY"] = str(library)
    command = [sys.executable, "-c", "import tarn"]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


def test_a_package_without_its_library(tmp_path: Path) -> None:
    line = import_elsewhere(tmp_path, None)
    assert line.startswith("ImportError: tarn: the library ") and "libtarn.so is missing" in line


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libtarn.so").write_text("no library")
    line = import_elsewhere(tmp_path, tmp_path / "libtarn.so")
    assert line.startswith("ImportError: tarn: ") and "cannot be used" in line


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_a_library_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text('const char *tarn_version(void) { return "99.1.0"; }\n')
    library = tmp_path / "other.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)  # type: ignore[list-item]
    line = import_elsewhere(tmp_path, library)
    assert line == (
        f"ImportError: tarn: {library} is version 99.1.0, and this package is for version {tarn.__version__}"
    )


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_a_library_that_lacks_functions(tmp_path: Path) -> None:
    code = f'const char *tarn_version(void) {{ return "{tarn.__version__}"; }}\n'
    (tmp_path / "other.c").write_text(code)
    library = tmp_path / "other.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)  # type: ignore[list-item]
    line = import_elsewhere(tmp_path, library)
    assert line.startswith(f"ImportError: tarn: {library} is another build of version")


def test_version_and_build() -> None:
    assert tarn.version() == tarn.__version__ == _binding.VERSION
    assert "instruction set" in tarn.build_info()
