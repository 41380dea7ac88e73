"""How long reading a table takes, and how much memory, beside pandas and pyarrow.

    python benchmarks/tables.py [ROWS]

writes a table of 50 columns (40 of decimal numbers, 5 of whole ones, 3 of few words, times, and
text that is different in every row) and reads it with each reader in a process of its own. Memory
is how much the peak grows beyond what is there after the imports, as a multiple of the file.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

READERS = {
    "pandas": ("import pandas", "pandas.read_csv(path)", {}),
    "pyarrow": ("import pyarrow.csv", "pyarrow.csv.read_csv(path)", {}),
    "chainrule, compiled": ("from chainrule.data import read_table", "read_table(path)", {}),
    "chainrule, NumPy and pyarrow": (
        "from chainrule.data import read_table; import pyarrow.csv, pyarrow.compute",
        "read_table(path)",
        {"CHAINRULE_KERNELS": "numpy"},
    ),
    "chainrule, NumPy alone": (
        "import sys; sys.modules['pyarrow'] = None; from chainrule.data import read_table",
        "read_table(path)",
        {"CHAINRULE_KERNELS": "numpy"},
    ),
}
PROGRAM = """
import resource, sys, time
{imports}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
path = sys.argv[1]
before, start, cpu = peak(), time.perf_counter(), time.process_time()
table = {read}
print(time.perf_counter() - start, time.process_time() - cpu, peak() - before)
"""


def write_table(path: Path, rows: int) -> None:
    """A table of 50 columns, with a gap in every tenth row."""
    r = random.Random(0)
    names = [
        *[f"x{i}" for i in range(40)],
        *[f"n{i}" for i in range(5)],
        "a",
        "b",
        "c",
        "time",
        "text",
    ]
    with path.open("w") as file:
        print(",".join(names), file=file)
        for i in range(rows):
            cells = [f"{r.gauss(0, 1) * 10 ** (j % 6 - 2):.6g}" for j in range(40)]
            if i % 10 == 0:
                cells[i // 10 % 40] = ""
            cells += [str(r.randrange(-1000, 100_000)) for _ in range(5)]
            cells += [f"word {r.randrange(5 + 10 * j)}" for j in range(3)]
            cells += [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02} {i % 24:02}:{i % 60:02}", f"row {i}"]
            print(",".join(cells), file=file)


def measured(name: str, path: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processors, and bytes."""
    imports, read, settings = READERS[name]
    program = PROGRAM.format(imports=imports, read=read)
    told = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, cpu, growth = map(float, told.stdout.split())
    return seconds, cpu, growth


def main(rows: int) -> None:
    """Prints a table of all readers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, rows)
        size = path.stat().st_size
        print(f"{rows:,} rows of 50 columns, {size / 2**20:,.0f} MiB\n")
        print("| reader | seconds | of processors | times pandas | memory, times the file |")
        print("|---|---|---|---|---|")
        first = 0.0
        for name in READERS:
            seconds, cpu, growth = min([measured(name, path) for _ in range(3)])
            first = first or seconds
            told = f"{seconds:.2f} | {cpu:.2f} | {seconds / first:.1f} | {growth / size:.1f}"
            print(f"| {name} | {told} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
