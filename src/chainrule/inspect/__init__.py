"""Looking inside: functions that show what happens and change nothing."""

from chainrule.inspect import textbook

__all__ = ["textbook"]
