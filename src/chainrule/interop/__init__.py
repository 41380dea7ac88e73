"""Other libraries that compute with chainrule's tensors: einops.

einops knows a library of tensors if a subclass of its ``AbstractBackend`` describes it. The
subclass needs einops to be imported, and einops asks nothing of a tensor that it does not know. So
the description has to be made when both libraries are imported, whichever comes first. If einops
does, ``import chainrule`` finds it in ``sys.modules``. If chainrule does, :class:`Finder` waits in
``sys.meta_path``: it answers for the names ``einops``, which it lets others find and load, and
``einops.layers.chainrule``, the layers; for every other name it returns None. Nothing of einops is
imported, copied or changed before a program imports it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc takes as long to import as all else here ten times over

__all__ = ["Finder", "announce", "describe_to_einops"]

LAYERS = "einops.layers.chainrule"


def announce() -> None:
    """Makes tensors known to einops, now or when it is imported."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    if "einops" in sys.modules:
        describe_to_einops()


def describe_to_einops() -> None:
    """Defines the backend by which einops computes with tensors."""
    try:
        import_module("chainrule.interop.einops_backend")
    except (ImportError, AttributeError, TypeError) as error:
        version = getattr(sys.modules.get("einops"), "__version__", "(of unknown version)")
        warnings.warn(
            f"einops {version} does not take chainrule's tensors: {error}. They are described to "
            "einops by a subclass of einops._backends.AbstractBackend, as it is in einops 0.8; "
            "install that version",
            stacklevel=2,
        )


class Finder:
    """Finds ``einops`` as others do, to have tensors described to it, and its layers here."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the import system asks for every module that is not yet imported."""
        if name == LAYERS:
            return ModuleSpec(name, _Layers())
        if name != "einops":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ThenDescribe(spec.loader)
                return spec
        return None


class _ThenDescribe(Loader):
    """Loads a module as its own loader does, then describes tensors to it."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module to be filled, if the loader makes one itself."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Fills the module, which keeps no trace of this class."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        describe_to_einops()


class _Layers(Loader):
    """Loads ``einops.layers.chainrule``: the layers of :mod:`chainrule.interop.einops_layers`."""

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Puts the layers into it."""
        home = import_module("chainrule.interop.einops_layers")
        module.__doc__ = home.__doc__
        vars(module).update({name: getattr(home, name) for name in ["__all__", *home.__all__]})
