"""From tables to tensors: what is fitted on the training rows and saved with the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.data.preprocess import Fittable, saved
from chainrule.data.columns import TableError
from chainrule.data.table import Table
from chainrule.data.tabular.features import Feature
from chainrule.data.tabular.guessing import guess_roles
from chainrule.data.tabular.large import LargeCategory
from chainrule.data.tabular.making import make_feature, restored_feature
from chainrule.data.tabular.moments import Duration, Moment, durations
from chainrule.data.tabular.roles import DROP, Role, Roles, given_roles
from chainrule.data.tabular.shared import quoted
from chainrule.ops.creation.patterns import empty
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["TableEncoder"]


class TableEncoder(Fittable):
    """The features of a table as a tensor (N, F): numbers scaled, categories one-hot, and more.

    Each column has a role, in ``roles`` with the reason: what was said about it, or else a guess
    by its values. Numbers are scaled by median and quartiles and smoothly clipped to [-3, 3]. Few
    categories are one-hot; of many the features are how often each occurs and the mean of the
    target there. A column says where a value is missing if that occurred in training; a category
    not seen in training is zeros, or the mean of all. Columns without information are left out;
    ``left_out`` says why.

    Args:
        roles: by column "number", "category", "ordinal" (or its values in their order), "date",
            "text", "boolean" or "drop", in the place of the guess.
        max_categories: how many categories are one-hot at most.
        indices: whether the last features are, for each column with more categories, their
            numbers from 1, for an embedding; 0 is a value not seen in training, or missing.

    >>> from chainrule.data import Table
    >>> table = Table.from_dict({"x": [1.0, 3.0], "color": ["red", "blue"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.feature_names
    ['x', 'color=blue', 'color=red']
    >>> encoder(table)
    tensor([[-0.9487,  0.0000,  1.0000],
            [ 0.9487,  1.0000,  0.0000]])
    """

    def __init__(
        self, roles: Roles | None = None, max_categories: int = 12, *, indices: bool = False
    ):
        super().__init__()
        if max_categories < 2:
            raise ValueError(
                f"TableEncoder: max_categories must be at least 2, got {max_categories}"
            )
        self.given = given_roles(roles)
        self.max_categories, self.with_indices = max_categories, indices
        self.features: list[Feature] = []
        self.roles: dict[str, Role] = {}

    def fit(
        self, table: Table, target: Tensor | None = None, guesses: Mapping[str, Role] | None = None
    ) -> Self:
        """Learns from the training rows what the features need.

        Args:
            table: the training rows, without the target's column.
            target: their encoded target, class numbers (N,) or numbers (N, m); with it the mean
                of the target is a feature of large categories.
            guesses: roles found on more rows than these (see ``guess_roles``); what a person said
                goes before them.
        """
        if not len(table):
            raise TableError("TableEncoder.fit: the table has no rows")
        if target is not None and len(target) != len(table):
            raise ValueError(
                f"TableEncoder.fit: the table has {len(table)} rows, the target {len(target)}"
            )
        roles = guess_roles(table, self.given, guesses)
        features: list[Feature] = []
        for column in table:
            made = make_feature(column, roles[column.name], target, self.max_categories)
            if isinstance(made, Role):
                roles[column.name] = made
            else:
                features.append(made)
        dates = [feature for feature in features if isinstance(feature, Moment)]
        features += durations(dates, table.columns)
        if not features:
            why = "; ".join(f"{name}: {role.reason}" for name, role in roles.items())
            raise TableError(f"no column is left to learn from ({why})")
        self.features, self.roles = features, roles
        return self

    def fit_transform(
        self, table: Table, target: Tensor | None = None, guesses: Mapping[str, Role] | None = None
    ) -> Tensor:
        """The features of the training rows, where no row's own target is in its statistics."""
        self.fit(table, target, guesses)
        return self._filled(table, target)

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are left out, and why."""
        return {name: role.reason for name, role in self.roles.items() if role.kind == DROP}

    @property
    def columns(self) -> list[str]:
        """The columns that features are made of."""
        return list(dict.fromkeys([feature.name for feature in self.features]))

    @property
    def _indexed(self) -> list[LargeCategory]:
        found = [f for f in self.features if isinstance(f, LargeCategory)]
        return found if self.with_indices else []

    @property
    def feature_names(self) -> list[str]:
        """The names of the tensor's columns."""
        plain = [name for feature in self.features for name in feature.names]
        return [*plain, *[f"{feature.name} index" for feature in self._indexed]]

    @property
    def sources(self) -> list[str]:
        """The column of the table behind each feature."""
        plain = [feature.name for feature in self.features for _ in feature.names]
        return [*plain, *[feature.name for feature in self._indexed]]

    @property
    def index_sizes(self) -> list[int]:
        """How many different numbers the last features have that are indices of categories."""
        return [feature.index_size for feature in self._indexed]

    def forward(self, table: Table, target: str | None = None) -> Tensor:
        """The features of the rows of a table (which may still hold the target's column)."""
        if not self.features:
            raise RuntimeError("TableEncoder: not fitted; call fit(table) with the training rows")
        missing = [name for name in self.columns if name not in table]
        unknown = [n for n in table.names if n not in self.roles and n != target]
        if missing:
            raise TableError(f"columns that the model needs are missing: {quoted(missing)}")
        if unknown:
            raise TableError(
                f"the model does not know the columns {quoted(unknown)}; it was trained on "
                f"{quoted(list(self.roles))}"
            )
        return self._filled(table)

    @no_grad()
    def _filled(self, table: Table, target: Tensor | None = None) -> Tensor:
        """The features, written column by column: nothing else of their size is made.

        With the target, the rows are those of training.
        """
        features = empty(len(table), len(self.feature_names), dtype=dtypes.get_default_dtype())
        start = 0
        for block in self.blocks(table, target):
            # An assignment would copy all features in inference mode.
            features[:, start : start + block.shape[1]].copy_(block)
            start += block.shape[1]
        return features

    def blocks(self, table: Table, target: Tensor | None = None) -> Iterator[Tensor]:
        """What each column makes of the rows, (N, its features): side by side they are all."""
        for feature in self.features:
            yield _block(feature, table, target)
        for feature in self._indexed:
            yield reshape(feature.indices(table[feature.name]), (-1, 1))

    def get_extra_state(self) -> dict[str, Any]:
        return {
            "features": [feature.state() for feature in self.features],
            "roles": {name: role.told() for name, role in self.roles.items()},
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        features, told = saved("TableEncoder", state, features="dicts", roles="dict")
        made = [restored_feature(feature) for feature in features]
        roles = {str(name): Role.restored(role) for name, role in told.items()}
        own = [f.name for f in made if not isinstance(f, Duration)]
        dates = [f.name for f in made if isinstance(f, Moment)]
        pairs = [name for f in made if isinstance(f, Duration) for name in (f.start, f.name)]
        used = [name for name in own if name in roles and roles[name].kind != DROP]
        if len(set(own)) < len(own) or len(used) < len(own) or not set(pairs) <= set(dates):
            raise ValueError("TableEncoder: the saved features and roles are of different columns")
        self.features, self.roles = made, roles

    def extra_repr(self) -> str:
        return f"{len(self.columns)} columns -> {len(self.feature_names)} features"


def _block(feature: Feature, table: Table, target: Tensor | None) -> Tensor:
    """What a feature makes of a table; of its training rows, if there is a target."""
    column = table[feature.name]
    if isinstance(feature, Duration):
        return feature.of_both(table[feature.start], column)
    if target is not None and isinstance(feature, LargeCategory):
        return feature.training_block(column, target)
    return feature.block(column)
