"""The notebooks run from the first cell to the last, and one that is interrupted in a training loses nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import tarn

for module in ("nbclient", "nbformat", "ipykernel", "matplotlib"):
    pytest.importorskip(module, reason=f"{module} is not installed")
pytest.importorskip("sklearn", "1.6", reason="scikit-learn 1.6 or later is not installed")

import nbformat
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

SOURCE = Path(os.environ.get("TARN_SOURCE_DIR", Path(__file__).parents[2]))
NOTEBOOKS = {"learning_curves": "curves.png", "reservoir": "forecast.png"}


def test_every_notebook_is_tested() -> None:
    assert {path.stem for path in (SOURCE / "examples/notebooks").glob("*.ipynb")} == set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARN_NOTEBOOK_UPDATES", "12")
    monkeypatch.setenv("TARN_NOTEBOOK_UNITS", "100")
    notebook = nbformat.read(SOURCE / "examples/notebooks" / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept in the repository"
    # Cells are run again: what was trained is there, and stays.
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells += [nbformat.v4.new_code_cell(cell.source) for cell in cells if "def train(" in cell.source]
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert list(tmp_path.glob(f"*/{NOTEBOOKS[name]}"))
    printed = "".join(out.get("text", "") for cell in notebook.cells for out in cell.get("outputs", []))
    if name == "reservoir":
        assert "spectral radius 0." in printed
    else:
        assert "half is" in printed and printed.count("half ['") == 2
        told = [line for line in printed.splitlines() if line.startswith("half ['")]
        assert told[0] == told[1]
        shown = [out["data"] for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
        assert sum("<progress" in one.get("text/html", "") for one in shown) == 2 * 3  # models and seeds
        assert any("baseline full" in one.get("text/html", "") for one in shown) and any("image/svg+xml" in one for one in shown)


def reply_to(client: Any, message: str) -> dict[str, Any]:
    """What came of a cell; other messages of the kernel are passed over."""
    while (reply := client.get_shell_msg(timeout=120))["parent_header"]["msg_id"] != message:
        pass
    content: dict[str, Any] = reply["content"]
    return content


def weights(run: Path) -> bytes:
    data = (run / "checkpoint_last.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def test_an_interrupted_notebook_loses_nothing(description: dict[str, Any], tmp_path: Path) -> None:
    long = {**description, "train": {**description["train"], "max_updates": 100000}}
    (tmp_path / "model.yaml").write_text(tarn.to_yaml(long))
    run = tmp_path / "run"
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        cell = client.execute('import tarn\ntarn.train("model.yaml", "run")')
        limit = time.monotonic() + 120
        # The first line of the log is that of the validation before the first update.
        while not (run / "log.jsonl").exists() or (run / "log.jsonl").read_text().count("\n") < 2:
            assert time.monotonic() < limit and client.is_alive()
            time.sleep(0.05)
        manager.interrupt_kernel()
        reply = reply_to(client, cell)
        assert reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt"
        with tarn.Run(run, which="last") as model:
            reached = model.update
        assert reached > 0
        # The same kernel goes on.
        cell = client.execute(f'tarn.train(None, "run", resume=True, overrides={{"train.max_updates": {reached + 3}}})')
        assert reply_to(client, cell)["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    whole = {**description, "train": {**description["train"], "max_updates": reached + 3}}
    tarn.train(whole, tmp_path / "whole")
    assert weights(run) == weights(tmp_path / "whole")
