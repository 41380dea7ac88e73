"""The role of a column: what it is taken for, and why; guesses, and what was said about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.data.columns import TableError
from chainrule.data.preprocess import saved
from chainrule.data.tabular.shared import quoted

__all__ = ["BOOLEAN", "CATEGORY", "DATE", "DROP", "KINDS", "NUMBER", "ORDINAL", "TEXT", "Role"]
__all__ += ["Roles", "given_roles"]

NUMBER, CATEGORY, ORDINAL, BOOLEAN = "number", "category", "ordinal", "boolean"
DATE, TEXT, DROP = "date", "text", "drop"
KINDS = (NUMBER, CATEGORY, ORDINAL, DATE, TEXT, BOOLEAN, DROP)

Roles = Mapping[str, str | Sequence[Any]]


@dataclass(frozen=True)
class Role:
    """What a column is taken for.

    ``kind`` is "number", "category", "ordinal", "date", "text", "boolean" or "drop"; ``reason``
    says why in words; ``given`` whether a person said so. ``how`` is what else was found or said
    for that kind, like the order of the values of an ordinal.
    """

    kind: str
    reason: str
    given: bool = False
    how: dict[str, Any] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Kind, reason and whether it was given, as plain values."""
        return {"kind": self.kind, "why": self.reason, "given": self.given}

    @classmethod
    def restored(cls, told: dict[str, Any]) -> Role:
        """From plain values of a file."""
        kind, reason, given = saved("Role", told, kind="text", why="text", given="truth")
        if kind not in KINDS:
            raise ValueError(f"Role: unknown kind {kind!r}; the kinds are {', '.join(KINDS)}")
        return cls(kind, reason, given)


def given_roles(roles: Roles | None) -> dict[str, Role]:
    """The roles that a person gave by column: the name of a kind, or an ordinal's values."""
    if roles is None:
        return {}
    if not isinstance(roles, Mapping):
        raise TypeError(
            f"roles: expected a dictionary from columns to kinds, got {type(roles).__name__}"
        )
    return {str(name): _given(str(name), role) for name, role in roles.items()}


def _given(name: str, role: str | Sequence[Any]) -> Role:
    if isinstance(role, str):
        kind, _, form = role.partition(" ")
        if kind not in KINDS or (form and (kind != DATE or form not in ("dmy", "mdy"))):
            raise ValueError(
                f"roles: column {name!r} cannot be {role!r}; it can be {', '.join(KINDS)}, "
                "'date dmy' or 'date mdy', or the list of an ordinal's values in their order"
            )
        return Role(kind, "as it was said", given=True, how={"form": form} if form else {})
    if not isinstance(role, Sequence):
        raise TypeError(
            f"roles: column {name!r} needs the name of a kind or a list of values in their order, "
            f"got {role!r}"
        )
    order = [word_of(value) for value in role]
    twice = sorted({word for word in order if order.count(word) > 1})
    if len(order) < 2 or twice:
        what = f"{quoted(twice)} twice" if twice else f"{len(order)} of them"
        raise TableError(f"roles: the ordered values of {name!r} must be several, got {what}")
    return Role(ORDINAL, "in the order that was given", given=True, how={"order": order})


def word_of(value: Any) -> str:
    """A value as the text that a column of categories has for it: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
