"""The command line: fit a network to data, use it, and say what is installed."""

from chainrule.cli.installation import info
from chainrule.cli.program import main

__all__ = ["info", "main"]
