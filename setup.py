"""Builds the compiled kernels where there is a compiler; the package works without them."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class BuildIfPossible(build_ext):
    """A failed build is told and passed over: the NumPy kernels serve."""

    def build_extension(self, ext: Extension) -> None:
        import numpy

        ext.include_dirs = [numpy.get_include(), "native"]
        alone = self.compiler.compile

        def compile_together(sources: list[str], **options: object) -> list[str]:
            """All sources at once, as many as there are processors."""
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = pool.map(lambda source: alone([source], **options), sources)
                return [path for part in parts for path in part]

        self.compiler.compile = compile_together
        try:
            super().build_extension(ext)
        except Exception as error:  # noqa: BLE001 - no compiler, or one that cannot do it
            print(f"chainrule: the compiled kernels were not built ({error})", file=sys.stderr)


# Products and sums are contracted as the compiler does by itself. Told -ffp-contract=fast, clang
# would pass over the pragma that turns it off in native/update.inc.
FLAGS = [
    "-std=c++17",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-g0",
    "-Wall",
    "-Wextra",
    "-pthread",
]
LINK = ["-pthread"]
if os.environ.get("CHAINRULE_SANITIZE") == "1":  # what `make sanitize` builds, for tests alone
    SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    FLAGS += ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZE]
    LINK += SANITIZE
without = os.environ.get("CHAINRULE_BUILD") == "numpy"
extension = Extension(
    "chainrule.backend._native",
    sorted(str(p) for p in Path("native").glob("*.cpp")),
    depends=sorted(str(p) for pattern in ("*.hpp", "*.inc") for p in Path("native").glob(pattern)),
    extra_compile_args=FLAGS if os.name == "posix" else ["/std:c++17", "/O2"],
    extra_link_args=LINK if os.name == "posix" else [],
    language="c++",
    optional=True,
)
setup(ext_modules=[] if without else [extension], cmdclass={"build_ext": BuildIfPossible})
