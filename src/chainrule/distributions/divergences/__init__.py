"""What divergences there are, by the families of the two distributions."""

from __future__ import annotations

from chainrule.distributions.divergences import mixed, same

__all__ = ["mixed", "same"]
