"""``python -m chainrule`` is the command ``chainrule``."""

from __future__ import annotations

import sys

from chainrule.cli import main

sys.exit(main())
