"""What a library costs before it computes anything: the time to import it, its size on disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from statistics import median

from _timing import Times

__all__ = ["import_times", "installed_size"]

ROOT = Path(__file__).resolve().parents[1]


def import_times(names: list[str], repeats: int = 7) -> dict[str, Times]:
    """Seconds that ``import name`` takes in a new process, by turns."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    spent: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repeats + 1):
        for name in names:
            call = [sys.executable, "-c", code.format(name)]
            done = subprocess.run(call, capture_output=True, text=True, env=environment, check=True)
            spent[name].append(float(done.stdout))
    return {name: Times(min(of[1:]), median(of[1:])) for name, of in spent.items()}


def _name(requirement: str) -> str | None:
    """The name of a requirement, unless it is for an extra or for another platform."""
    name, _, marker = requirement.partition(";")
    found = re.match(r"[A-Za-z0-9._-]+", name.strip())
    if found is None or "extra" in marker:
        return None
    try:
        from packaging.markers import Marker

        if marker and not Marker(marker).evaluate():
            return None
    except ImportError:
        pass
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def _files(distribution: metadata.Distribution) -> int:
    paths = [Path(str(distribution.locate_file(f))) for f in distribution.files or ()]
    return sum(p.stat().st_size for p in paths if p.suffix != ".pyc" and p.is_file())


def _package() -> int:
    """The size of this package, which may be installed in place."""
    files = (ROOT / "src" / "chainrule").rglob("*")
    return sum(p.stat().st_size for p in files if p.suffix != ".pyc" and p.is_file())


def installed_size(name: str) -> tuple[int, list[str]]:
    """Bytes of a package with all that it needs, and what that is; without caches."""
    if name == "chainrule":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        size, waiting, seen = _package(), list(project["dependencies"]), {"chainrule"}
    else:
        size, waiting, seen = 0, [name], set()
    while waiting:
        needed = _name(waiting.pop())
        if needed is None or needed in seen:
            continue
        seen.add(needed)
        try:
            distribution = metadata.distribution(needed)
        except metadata.PackageNotFoundError:
            continue
        size += _files(distribution)
        waiting += distribution.requires or []
    return size, sorted(seen)
