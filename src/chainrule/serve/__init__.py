"""A fitted network behind an address: rows as JSON or images in, answers out.

Needs Starlette and uvicorn: ``pip install 'chainrule[serve]'``.
"""

from __future__ import annotations

from chainrule.serve.application import application
from chainrule.serve.limits import Limits, limits_for
from chainrule.serve.program import run

__all__ = ["Limits", "application", "limits_for", "run"]
