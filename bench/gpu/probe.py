"""What the machine has: driver, C library, libraries, card. What is missing is said in one line each."""

import os
import platform
import re
import shutil
import subprocess
import sys

from place import cublas_folder

QUERY = ["name", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem",
         "power.limit", "compute_cap", "mig.mode.current"]
GLIBC = (2, 35)  # what scripts/gpu_bundle.sh lets programs need


def output_of(command, env=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=25, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def card(missing):
    """The cards as nvidia-smi tells them, each with the answers to QUERY."""
    if not shutil.which("nvidia-smi"):
        missing.append("no nvidia-smi: there is no driver, or it is not on the path")
        return []
    code, text = output_of(["nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"])
    if code != 0:
        missing.append(f"nvidia-smi: {(text.strip().splitlines() or ['it failed'])[-1]}")
        return []
    return [dict(zip(QUERY, map(str.strip, line.split(",")))) for line in text.strip().splitlines()]


def libraries(place, missing):
    """Libraries that the program does not find."""
    _, text = output_of(["ldd", place.tarn], place.env)
    for line in text.splitlines():
        if "not found" in line:
            missing.append(f"{place.tarn}: {line.strip()}")
    return output_of([place.tarn, "version"], place.env)


def c_library(missing):
    text = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else "unknown"
    found = re.search(r"(\d+)\.(\d+)", text)
    if not found or tuple(map(int, found.groups())) < GLIBC:
        missing.append(f"the C library is {text}; {'.'.join(map(str, GLIBC))} or later is needed")
    return text


def peer(missing):
    """The version of this Python's PyTorch; "" where there is none."""
    code, text = output_of([sys.executable, "-c", "import numpy, torch; print(torch.__version__, torch.cuda.is_available())"])
    if code != 0:
        missing.append(f"{sys.executable} has no PyTorch with NumPy: nothing to compare with (PYTHON names another one)")
        return ""
    return text.split()[0]


def probe(place):
    """(figures, missing lines, whether the steps that need a card can be tried)."""
    missing = []
    cards = [] if place.host else card(missing)
    code, version = libraries(place, missing)
    if code != 0:
        missing.append(f"{place.tarn} does not start: {(version.strip().splitlines() or ['it printed nothing'])[-1]}")
    figures = {"machine": platform.platform(), "processors": os.cpu_count(), "glibc": c_library(missing),
               "python": sys.version.split()[0], "tarn": version.strip(), "cards": cards,
               "torch": "" if place.host else peer(missing), "cublas": cublas_folder()}
    if not place.host:
        if not figures["cublas"] and "libcublasLt" not in output_of(["ldconfig", "-p"])[1]:
            missing.append("no libcublasLt.so: no products on the card (CUDA_HOME or LD_LIBRARY_PATH)")
        for tool in ("ncu", "compute-sanitizer"):
            if not shutil.which(tool):
                missing.append(f"no {tool} on the path: its step is skipped")
    if not os.path.isfile(os.path.join(place.modules, "tarn-cuda.so")):
        missing.append(f"no {os.path.join(place.modules, 'tarn-cuda.so')}: the device cuda is missing")
        code = 1
    return figures, missing, code == 0 and (place.host or bool(cards))
