"""Where the program, its module, the tests and the data are, in a bundle or in a source tree, and how they are run."""

import glob
import os
import shutil
import subprocess
import sys
import time

from report import Failed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def cublas_folder():
    """A folder with cuBLASLt that the loader does not look into by itself: the toolkit's, or that of Python's packages."""
    wanted = [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64"), "/usr/local/cuda-*/lib64"]
    wanted += [os.path.join(path, "nvidia", package, "lib") for path in sys.path for package in ("cu13", "cublas")]
    for pattern in wanted:
        for path in sorted(glob.glob(os.path.join(pattern, "libcublasLt.so*"))):
            return os.path.dirname(path)
    return ""


class Place:
    def __init__(self, host, folder):
        self.host, self.folder, self.root = host, folder, ROOT
        self.bundle = os.path.isfile(os.path.join(ROOT, "bin", "tarn"))
        if self.bundle:
            self.programs, self.tests = os.path.join(ROOT, "bin"), os.path.join(ROOT, "tests")
            self.modules = os.path.join(ROOT, "host") if host else self.programs
        else:
            self.programs = os.environ.get("TARN_BUILD", os.path.join(ROOT, "build", "release"))
            self.tests = os.path.join(self.programs, "tests")
            self.modules = os.path.join(self.tests, "cuda_host") if host else self.programs
        self.tarn = os.path.join(self.programs, "tarn")
        self.ceilings = os.path.join(self.modules, "cuda_ceilings")
        self.env = dict(os.environ, TARN_CUDA_MODULES=self.modules)
        self.env.pop("TARN_DEVICE", None)
        library = "" if host else cublas_folder()
        if library:
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), library]))

    def example(self, path):
        return os.path.join(self.root, "examples", path)

    def names_of(self, kind):
        """Paths of the tests of a kind (kernels, golden) that are here."""
        listed = os.path.join(self.root, "tests", "gpu_tests.txt")
        if os.path.isfile(listed):
            with open(listed, encoding="utf-8") as file:
                names = [line.split("/")[1] for line in file.read().split() if line.startswith(kind + "/")]
        else:
            files = glob.glob(os.path.join(self.root, "tests", kind, "test_*.c"))
            names = [os.path.basename(file)[:-2] for file in files]
        return [name for name in sorted(names) if os.access(os.path.join(self.tests, name), os.X_OK)]


class Runner:
    """Runs programs for a step, with the seconds that it has."""

    def __init__(self, place, report):
        self.place, self.report = place, report

    def run(self, command, seconds, env=None, what=""):
        """Code, output and seconds; code None where the time was over, and the program was ended."""
        begin = time.monotonic()
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  cwd=self.place.root, env={**self.place.env, **(env or {})}, text=True,
                                  errors="replace", timeout=max(1, seconds), check=False)
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as over:
            code, output = None, (over.stdout or b"").decode(errors="replace") if isinstance(over.stdout, bytes) else over.stdout or ""
        except OSError as error:
            raise Failed(f"{command[0]}: {error.strerror}") from None
        self.report.note(what or " ".join(command), output[-20000:])
        return code, output, time.monotonic() - begin

    def must(self, command, seconds, env=None, what=""):
        """The output of a program that has to succeed."""
        code, output, _ = self.run(command, seconds, env, what)
        name = what or os.path.basename(command[0])
        if code is None:
            raise Failed(f"{name}: not done after {seconds:.0f} s")
        if code != 0:
            raise Failed(f"{name}: {line_of(output, code)}")
        return output

    def tarn(self, words, seconds, what="", env=None):
        return self.must([self.place.tarn, *words], seconds, env, what or "tarn " + words[0])


def line_of(output, code):
    """The line that says what went wrong: of a test of cmocka the first failure, of tarn its last line, else the last."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if line.startswith("ERROR: ") or (line.startswith("[  ERROR   ] --- ") and "[   LINE   ]" not in line):
            return line.split("--- ")[-1].removeprefix("ERROR: ")
    for line in reversed(lines):
        if line.startswith("tarn"):
            return line
    if code is not None and code < 0:
        return f"ended by signal {-code}" + (f" after: {lines[-1]}" if lines else "")
    return lines[-1] if lines else f"it printed nothing and ended with code {code}"


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    return folder
