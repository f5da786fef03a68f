"""What the environment says, and how programs are run."""

import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def first_file(pattern):
    found = sorted(glob.glob(pattern))
    return found[0] if found else ""


BUILD = os.environ.get("TARN_BUILD", os.path.join(ROOT, "build", "release"))
TARN = os.environ.get("TARN", os.path.join(BUILD, "tarn"))
DATA = os.environ.get("TARN_DATA", os.path.join(ROOT, "..", "shared", "data"))
PEERS = os.environ.get("TARN_PEERS", os.path.join(ROOT, "..", "shared", "peers"))
THREADS = int(os.environ.get("THREADS", "2"))
TCMALLOC = os.environ.get("TCMALLOC", first_file("/usr/lib/*/libtcmalloc.so.4"))
# Debian's PyTorch takes its fp32 products from whatever BLAS is found first; this one runs on all threads.
OPENBLAS = os.environ.get("OPENBLAS", os.path.dirname(first_file("/usr/lib/*/openblas-openmp/libblas.so.3")))


def pythons():
    """Paths of the Pythons that peers are looked for in: those of PYTHON (a list with colons), then the usual ones."""
    wanted = [p for p in os.environ.get("PYTHON", "").split(":") if p] + ["python3", "/usr/bin/python3"]
    found = [shutil.which(p) for p in wanted]
    return list(dict.fromkeys(p for p in found if p))


# As tarn sets it, for all programs: threads that spin for long take the time of others where cores are shared.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")


class Failure(Exception):
    """One clear line for the user."""

    code = 1


class Usage(Failure):
    """The user asked for something that is not there."""

    code = 2


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, what, stdin=None, stdout=None, env=None):
    """Runs a program to its end and returns what it printed (or "" if `stdout` is an open file)."""
    try:
        done = subprocess.run(command, stdin=stdin or subprocess.DEVNULL, stdout=stdout or subprocess.PIPE,
                              stderr=subprocess.PIPE, env=env, text=True, errors="replace", check=False)
    except OSError as error:
        raise Failure(f"{what}: {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["(it printed nothing)"])[-1]
        raise Failure(f"{what}: {command[0]} ended with code {done.returncode}: {last}")
    return done.stdout or ""
