#!/usr/bin/env python3
"""Packs an installed tree of the preset `bundle` as a wheel and as an archive that can be unpacked anywhere.

usage: pack.py SOURCES TREE BINDING LICENSES TAG FOLDER
  SOURCES   the root of tarn
  TREE      where `cmake --install` has put it
  BINDING   _binding.py of the Python package
  LICENSES  the folder of the bundled libraries' licences
  TAG       the platform of the wheel, such as manylinux_2_28_x86_64
  FOLDER    gets both files, whose names are printed

Equal contents give equal bits: entries are sorted, and their owner, permissions and time (SOURCE_DATE_EPOCH) do not come from
the file system.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

Files = dict[str, tuple[bytes, bool]]  # by path: contents, and whether it can be executed
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
FIRST_OF_ZIP = 315532800  # 1980


def tree_of(tree: Path, licenses: Path, license_file: Path) -> tuple[Files, dict[str, str]]:
    """Files and symbolic links below the prefix."""
    files: Files = {}
    links: dict[str, str] = {}
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        if path.is_symlink():
            links[name] = os.readlink(path)
        elif path.is_file():
            files[name] = (path.read_bytes(), os.access(path, os.X_OK) and not name.startswith("lib/"))
    files["share/doc/tarn/LICENSE"] = (license_file.read_bytes(), False)
    for path in sorted(licenses.iterdir()):
        files[f"share/doc/tarn/licenses/{path.name}"] = (path.read_bytes(), False)
    return files, links


def write_archive(path: Path, top: str, files: Files, links: dict[str, str]) -> None:
    folders = {top}
    for name in [*files, *links]:
        folders.update(f"{top}/{parent}" for parent in Path(name).parents if parent != Path())
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted([*folders, *(f"{top}/{name}" for name in [*files, *links])]):
            entry = tarfile.TarInfo(name)
            entry.mtime, entry.mode, entry.uname, entry.gname = EPOCH, 0o644, "root", "root"
            contents = b""
            inner = name[len(top) + 1 :]
            if name in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            elif inner in links:
                entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, links[inner]
            else:
                contents, executable = files[inner]
                entry.size, entry.mode = len(contents), 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(contents))
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, EPOCH) as compressed:
        compressed.write(packed.getvalue())


def version_of(sources: Path, pattern: str) -> str:
    found = re.search(pattern, (sources / "CMakeLists.txt").read_text())
    if not found:
        sys.exit("pack.py: CMakeLists.txt does not state the version")
    return found["value"]


def metadata(project: dict, version: str, description: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}"]
    lines += ["License: MIT", f"Requires-Python: {project['requires-python']}"]
    lines += [f"Classifier: {word}" for word in project["classifiers"]]
    lines += [f"Requires-Dist: {word}" for word in project["dependencies"]]
    for extra, words in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {word}; extra == "{extra}"' for word in words]
    return "\n".join(lines) + f"\nDescription-Content-Type: text/markdown\n\n{description}"


def wheel_of(sources: Path, binding: Path, files: Files, links: dict[str, str]) -> Files:
    """The contents of the package: the prefix without program and pages is the folder of the package itself."""
    packed: Files = {}
    for path in sorted([*(sources / "python/tarn").glob("*.py"), sources / "python/tarn/py.typed"]):
        packed[f"tarn/{path.name}"] = (path.read_bytes(), False)
    packed["tarn/_binding.py"] = (binding.read_bytes(), False)
    for name, entry in files.items():
        if name.startswith(("lib/", "include/")):
            packed[f"tarn/{name}"] = entry
    # A wheel has no symbolic links. The linker takes a text that names the library instead.
    for name, target in links.items():
        packed[f"tarn/{name}"] = (f"INPUT ( {target} )\n".encode(), False)
    return packed


def write_wheel(folder: Path, sources: Path, tag: str, packed: Files, files: Files) -> Path:
    with (sources / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    project = settings["project"]
    version = version_of(sources, settings["tool"]["scikit-build"]["metadata"]["version"]["regex"])
    name = f"{project['name']}-{version}"
    packed[f"{name}.data/scripts/tarn"] = files["bin/tarn"]
    for path, entry in files.items():
        if path.startswith("share/") and not path.startswith("share/doc/"):
            packed[f"{name}.data/data/{path}"] = entry
        if path.startswith("share/doc/tarn/") and not path.startswith("share/doc/tarn/examples/"):
            packed[f"{name}.dist-info/{path.removeprefix('share/doc/tarn/')}"] = entry
    packed[f"{name}.dist-info/METADATA"] = (metadata(project, version, (sources / project["readme"]).read_text()).encode(), False)
    packed[f"{name}.dist-info/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tarn (packaging/bundle/pack.py)\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n".encode(),
        False,
    )
    record = f"{name}.dist-info/RECORD"
    rows = []
    for path in sorted(packed):
        digest = base64.urlsafe_b64encode(hashlib.sha256(packed[path][0]).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(packed[path][0])}\n")
    packed[record] = ("".join([*rows, f"{record},,\n"]).encode(), False)
    wheel = folder / f"{name}-py3-none-{tag}.whl"
    when = time.gmtime(max(EPOCH, FIRST_OF_ZIP))[:6]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        # The package's own description stands last, as the standard advises.
        for path in sorted(packed, key=lambda path: (".dist-info/" in path, path)):
            entry = zipfile.ZipInfo(path, when)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100755 if packed[path][1] else 0o100644) << 16
            archive.writestr(entry, packed[path][0])
    return wheel


def main() -> None:
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    sources, tree, binding, licenses, folder = (Path(sys.argv[i]) for i in (1, 2, 3, 4, 6))
    tag = sys.argv[5]
    files, links = tree_of(tree, licenses, sources / "LICENSE")
    wheel = write_wheel(folder, sources, tag, wheel_of(sources, binding, files, links), files)
    top = f"{wheel.name.split('-py3-')[0]}-linux-x86_64"
    write_archive(folder / f"{top}.tar.gz", top, files, links)
    print(wheel.name)
    print(f"{top}.tar.gz")


if __name__ == "__main__":
    main()
