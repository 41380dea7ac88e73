"""Records of the instruments in ``inspect/theory``."""

from __future__ import annotations

RECORDS: dict[str, object] = {}
