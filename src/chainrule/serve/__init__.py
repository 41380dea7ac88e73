"""A fitted network behind an address: rows as JSON in, answers out, many requests at once.

Needs Starlette and uvicorn: ``pip install 'chainrule[serve]'``.
"""

from __future__ import annotations

from chainrule.serve.application import application
from chainrule.serve.limits import Limits
from chainrule.serve.program import run

__all__ = ["Limits", "application", "run"]
