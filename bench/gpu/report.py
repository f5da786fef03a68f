"""The record of a run: one JSON file, written anew after every step, and one log with what the programs printed."""

import json
import os
import time


class Failed(Exception):
    """A step that did not do what it should, in one line; `figures` are what it found all the same."""

    def __init__(self, line, figures=None):
        super().__init__(line)
        self.figures = figures


class Skipped(Exception):
    """A step that cannot be done here, with the reason in one line."""


class Report:
    def __init__(self, folder, minutes, head):
        self.folder, self.end = folder, time.monotonic() + 60 * minutes
        self.path, self.log = os.path.join(folder, "gpu.json"), os.path.join(folder, "gpu.log")
        self.value = {"format": 1, "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "minutes": minutes,
                      **head, "finished": False, "steps": []}
        with open(self.log, "w", encoding="utf-8"):
            pass
        self.save()

    def save(self):
        """Under another name first: whoever reads it, or is cut off, finds a whole file."""
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.value, file, indent=1)
            file.write("\n")
        os.replace(self.path + ".new", self.path)

    def note(self, what, text):
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"=== {what}\n{text.rstrip()}\n")

    def left(self):
        return self.end - time.monotonic()

    def step(self, name, needs, act):
        """Does a step that needs so many seconds, and records it. act(seconds left) returns its figures."""
        begin, entry = time.monotonic(), {"name": name, "status": "ok", "seconds": 0.0}
        try:
            if self.left() < needs:
                raise Skipped(f"{max(0, self.left()):.0f} s are left" + (f", and it needs {needs}" if needs > 0 else ""))
            entry["figures"] = act(self.left())
        except Skipped as reason:
            entry.update(status="skipped", line=str(reason))
        except Failed as reason:
            entry.update(status="failed", line=str(reason), figures=reason.figures)
        except Exception as error:  # pylint: disable=broad-except
            # A fault of this script, or of the machine: the other steps are done all the same.
            entry.update(status="failed", line=f"{type(error).__name__}: {error}")
        entry["seconds"] = round(time.monotonic() - begin, 2)
        self.value["steps"].append(entry)
        self.save()
        line = entry.get("line") or summary((entry.get("figures") or {}).get("summary", ""))
        print(f"{entry['status']:8}{entry['seconds']:7.1f} s  {name:20} {line}", flush=True)
        return entry

    def finish(self):
        """Returns the names of the steps that failed."""
        self.value["finished"] = True
        self.value["seconds"] = round(sum(step["seconds"] for step in self.value["steps"]), 1)
        self.save()
        return [step["name"] for step in self.value["steps"] if step["status"] == "failed"]


def summary(text):
    return text if len(text) < 160 else text[:157] + "..."
