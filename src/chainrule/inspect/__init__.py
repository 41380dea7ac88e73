"""Looking inside: functions that show what happens and change nothing."""

from __future__ import annotations

from chainrule.inspect import textbook
from chainrule.inspect.autopsy import Autopsy, autopsy

__all__ = ["Autopsy", "autopsy", "textbook"]
