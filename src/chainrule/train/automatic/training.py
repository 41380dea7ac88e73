"""The network that settings describe, and its training."""

from __future__ import annotations

from typing import Any

from chainrule import nn, optim
from chainrule.models import MLP
from chainrule.optim.names import make_optimizer, optimizer_class
from chainrule.train.attending import Doctor
from chainrule.train.automatic.parts import Parts
from chainrule.train.automatic.settings import Settings
from chainrule.train.callbacks import Callback, GradientNorms
from chainrule.train.progress import ProgressLike
from chainrule.train.run_folder import RunFolder, digest_of, facts_of
from chainrule.train.trainer import Trainer

__all__ = ["make_network", "optimizer_of", "train_network"]


def make_network(parts: Parts, settings: Settings) -> nn.Module:
    """The multi-layer perceptron that the settings describe."""
    return MLP(
        int(parts.train[0].shape[1]),
        list(settings.hidden),
        parts.target.outputs,
        activation=settings.activation,
        dropout=settings.dropout,
        norm=settings.norm,
    )


def optimizer_of(settings: Settings, model: nn.Module) -> optim.Optimizer:
    """The optimizer that the settings name, with their rate and decay."""
    cls = optimizer_class(settings.optimizer)
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
        raise ValueError(
            f"the optimizer {settings.optimizer!r} does not take these: {error}"
        ) from None


def train_network(
    model: nn.Module,
    parts: Parts,
    settings: Settings,
    progress: ProgressLike = True,
    checkpoints: RunFolder | None = None,
    **facts: Any,
) -> tuple[Trainer, GradientNorms]:
    """Trains with early stopping on the validation part; the best weights are restored.

    Checkpoints are those of the run that the settings, the data and ``facts`` tell.
    """
    norms = GradientNorms()
    callbacks: list[Callback] = [norms]
    if settings.doctor:
        callbacks.append(Doctor(preflight=True, warn=False))
    resume = None
    if checkpoints is not None:
        data = digest_of([*parts.train, *parts.validation, *parts.test])
        told = {**vars(settings), "hidden": list(settings.hidden)}
        checkpoint, resume = checkpoints.before(model, facts_of(model, told, data, **facts))
        callbacks.append(checkpoint)
    trainer = Trainer(
        model,
        parts.target.loss,
        optimizer_of(settings, model),
        metrics=[parts.target.metric],
        class_weight=settings.class_weight,
        callbacks=callbacks,
        progress=progress,
        seed=settings.seed,
    )
    trainer.fit(
        parts.train,
        parts.validation,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        early_stopping=settings.patience,
        resume=resume,
    )
    if not len(trainer.history):  # interrupted before there was anything to keep
        raise KeyboardInterrupt
    return trainer, norms
