"""The network that settings describe, and its training."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule import nn, optim
from chainrule.models import MLP, TabularNetwork
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.names import make_optimizer, optimizer_class
from chainrule.train.attending import Doctor
from chainrule.tensor import Tensor
from chainrule.train.automatic.calibration import HeldOut, facts_of_errors, soften
from chainrule.train.automatic.ensemble import (
    RECIPES,
    Pool,
    Trained,
    make_members,
    train_members,
)
from chainrule.train.automatic.kept import KeptSearch
from chainrule.train.automatic.parts import Parts
from chainrule.train.automatic.search import search
from chainrule.train.automatic.settings import Settings
from chainrule.train.callbacks import Callback, GradientNorms
from chainrule.train.evaluation import predict
from chainrule.train.placing import DevicesLike, check_devices
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder, digest_of, facts_of
from chainrule.train.trainer import Trainer

__all__ = ["Learned", "make_network", "optimizer_of", "train_network"]


# Optimizers that need more than a loss and its gradient.
OTHERS: dict[type, str] = {
    optim.LevenbergMarquardt: "residuals",
    optim.GaussNewton: "residuals",
    optim.IRpropPlus: "a loss that it can compute again",
    optim.ExtendedKalmanFilter: "outputs and their targets",
}


class Learned(NamedTuple):
    """What a training came to: a network, its trainer, norms of gradients, and facts about it."""

    model: nn.Module
    trainer: Trainer
    norms: GradientNorms
    facts: dict[str, Any]

    def predict(self, x: Tensor) -> Tensor:
        """The outputs of the network for inputs x."""
        return predict(self.model, x, 1024)


def make_network(parts: Parts, settings: Settings) -> nn.Module:
    """The network that the settings describe, or the first that they try: see :class:`Settings`."""
    if not settings.is_plain:
        return make_members(Pool(parts, settings), RECIPES[settings.effort])
    plain = settings.as_plain()
    return MLP(
        int(parts.train[0].shape[1]),
        list(plain.hidden or ()),
        parts.target.outputs,
        activation=plain.activation or "relu",
        dropout=plain.dropout or 0.0,
        norm=plain.norm,
    )


def optimizer_of(settings: Settings, model: nn.Module) -> optim.Optimizer:
    """The optimizer that the settings name, with their rate and decay."""
    name = settings.as_plain().optimizer
    cls = optimizer_class(str(name))
    if cls in OTHERS:
        raise ValueError(
            f"the optimizer {name!r} works with {OTHERS[cls]}, not with the loss of a batch, and "
            "cannot be used by fit; adam and lbfgs can, and others of chainrule.optim"
        )
    options: dict[str, Any] = {}
    if settings.lr is not None:
        options["lr"] = settings.lr
    elif cls in (optim.SGD, optim.SGDW):
        options |= {"lr": 0.05, "momentum": 0.9}
    if settings.weight_decay:
        options["weight_decay"] = settings.weight_decay
    try:
        return make_optimizer("fit", cls, model.parameters(), **options)
    except TypeError as error:
        raise ValueError(f"the optimizer {name!r} does not take these: {error}") from None


def train_network(
    model: nn.Module,
    parts: Parts,
    settings: Settings,
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
    devices: DevicesLike | None = None,
    **facts: Any,
) -> Learned:
    """Trains with early stopping on held-out rows; the best weights are restored.

    Checkpoints are those of the run that the settings, the data and ``facts`` tell.
    """
    _check_devices(devices, settings)
    norms = GradientNorms(every=8 if isinstance(model, TabularNetwork) else 1)
    callbacks: list[Callback] = [norms]
    if settings.doctor:
        callbacks.append(Doctor(preflight=True, warn=False))
    checkpoint, resume = None, None
    if checkpoints is not None:
        data = digest_of(parts.kept)
        told = settings.as_dict()
        checkpoint, resume = checkpoints.before(model, facts_of(model, told, data, **facts))
        callbacks.append(checkpoint)
    if isinstance(model, TabularNetwork):
        pool = Pool(parts, settings)
        if settings.effort == "high":
            kept = KeptSearch(checkpoint, resume)
            together, found = search(model, pool, settings, callbacks, progress, kept)
            return _learned(together, found, norms, pool)
        recipe = RECIPES[settings.effort]
        found = train_members(model, pool, settings, recipe, callbacks, progress, resume, devices)
        return _learned(model, found, norms, pool)
    trainer = _train_plain(model, parts, settings, callbacks, progress, resume, devices)
    x, y = parts.validation
    seen = HeldOut(trainer.predict(x), y, None)
    told = facts_of_errors(seen, parts.target)
    if parts.target.task == "classification":
        told["temperature"] = soften(model, seen, parts.target.loss)
    return Learned(model, trainer, norms, {"calibration": told})


def _check_devices(devices: DevicesLike | None, settings: Settings) -> None:
    """Before anything is computed: whether the devices are there."""
    if devices is None:
        return
    if not settings.is_plain and settings.effort == "high":
        raise ValueError(
            f"devices={devices!r}: the effort 'high' trains many networks at once, on the CPU; "
            "leave devices out, or take the effort 'normal'"
        )
    check_devices(devices)


def _learned(model: nn.Module, found: Trained, norms: GradientNorms, pool: Pool) -> Learned:
    calibration = facts_of_errors(found.seen, pool.target)
    facts = {"trained": found.facts, "calibration": calibration}
    return Learned(model, found.trainer, norms, facts)


def _train_plain(
    model: nn.Module,
    parts: Parts,
    settings: Settings,
    callbacks: list[Callback],
    progress: ProgressLike,
    resume: Any,
    devices: DevicesLike | None,
) -> Trainer:
    """One network, stopped by the validation part."""
    plain, optimizer = settings.as_plain(), optimizer_of(settings, model)
    searches = isinstance(optimizer, Minimizer)  # along lines, which needs the same rows each time
    size = len(parts.train[1]) if searches and settings.batch_size is None else plain.batch_size
    trainer = Trainer(
        model,
        parts.target.loss,
        optimizer,
        metrics=[parts.target.metric],
        class_weight=settings.class_weight,
        callbacks=callbacks,
        progress=progress,
        seed=settings.seed,
        devices=devices,
    )
    trainer.fit(
        (*parts.train, parts.weights[0]),
        (*parts.validation, parts.weights[1]),
        epochs=plain.epochs or 1,
        batch_size=size or 1,
        early_stopping=plain.patience,
        resume=resume,
    )
    model.to("cpu")
    if not len(trainer.history):  # interrupted before there was anything to keep
        raise KeyboardInterrupt
    return trainer
