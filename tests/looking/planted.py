"""The 26 mistakes that the doctor has to name, each planted in a run that is sound otherwise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import Tensor, data, inspect, models, nn, optim, train
from chainrule.inspect import Finding
from chainrule.nn import functional as F

__all__ = ["MISTAKES"]

Findings = list[Finding]
Run = Callable[..., Findings]  # of a seed
MISTAKES: dict[str, tuple[str, Run]] = {}


def mistake(name: str, rule: str) -> Callable[[Callable[[], Findings]], Run]:
    """Lists a mistake with the name of the rule that has to find it."""

    def listed(run: Callable[[], Findings]) -> Run:
        def silent(seed: int = 0) -> Findings:
            chainrule.manual_seed(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return run()

        MISTAKES[name] = rule, silent
        return silent

    return listed


# --- sound parts ----------------------------------------------------------------------------------


def table(name: str, scaled: bool = True) -> tuple[Tensor, Tensor]:
    """An embedded table in random order, columns with mean 0 and variance 1."""
    x, y = data.embedded(name).tensors()
    order = chainrule.randperm(len(x))
    x, y = x[order], y[order]
    return ((x - x.mean(0)) / x.std(0).clamp(min=1e-3) if scaled else x), y


def net(inputs: int = 13, outputs: int = 3, *more: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs), *more)


def seen(model: nn.Module, given: Any, loss: Any = F.cross_entropy, rate: float = 0.01) -> Findings:
    optimizer = optim.Adam(model.parameters(), lr=rate)
    return inspect.doctor(model, loss, given, optimizer).findings


def deep(make: Callable[[], nn.Module], depth: int = 10, width: int = 16) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(13, width), make()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), make()]
    return nn.Sequential(*layers, nn.Linear(width, 3))


# --- the loop -------------------------------------------------------------------------------------


@mistake("no zero_grad", "gradients not cleared")
def no_zero_grad() -> Findings:
    x, y = table("wine")
    model, loss = net(), nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    with inspect.examining(model, optimizer, loss) as visit:
        for i in range(0, len(x), 32):
            loss(model(x[i : i + 32]), y[i : i + 32]).backward()
            optimizer.step()
    return visit.findings


@mistake("train mode in validation", "training mode in validation")
def train_mode() -> Findings:
    x, y = table("wine")
    model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    with inspect.examining(model, optimizer) as visit:
        for _ in range(3):
            for i in range(0, 128, 32):
                optimizer.zero_grad()
                F.cross_entropy(model(x[i : i + 32]), y[i : i + 32]).backward()
                optimizer.step()
            with chainrule.no_grad():
                F.cross_entropy(model(x[128:]), y[128:])
    return visit.findings


# --- the loss -------------------------------------------------------------------------------------


@mistake("softmax before cross-entropy", "softmax before cross-entropy")
def softmax() -> Findings:
    return seen(net(13, 3, nn.Softmax(1)), table("wine"))


@mistake("(N,1) against (N,)", "(N, 1) against (N,)")
def column() -> Findings:
    x, y = table("diabetes")
    y = (y - y.mean()) / y.std()
    return seen(net(10, 1), (x, y), lambda output, target: ((output - target) ** 2).mean())


@mistake("wrong loss reduction", "wrong loss reduction")
def reduction() -> Findings:
    return seen(net(), table("wine"), nn.CrossEntropyLoss(reduction="sum"), 0.001)


# --- the data -------------------------------------------------------------------------------------


@mistake("shifted labels", "shifted labels")
def shifted() -> Findings:
    x, y = table("wine")
    return seen(net(), (x, y.roll(1)))


@mistake("sorted data", "sorted data")
def in_order() -> Findings:
    x, y = table("digits")
    order = y.argsort()
    loader = data.DataLoader(data.TensorDataset(x[order], y[order]), batch_size=32)
    return seen(net(64, 10), loader)


@mistake("target among the inputs", "target among the inputs")
def leak() -> Findings:
    x, y = table("wine")
    return seen(net(14), (chainrule.cat([x, y.float().reshape(-1, 1)], 1), y))


@mistake("unscaled inputs", "unscaled inputs")
def unscaled() -> Findings:
    return seen(net(), table("wine", scaled=False))


@mistake("class imbalance", "class imbalance")
def imbalance() -> Findings:
    x, y = table("breast_cancer")
    rare = (y == 1).nonzero().reshape(-1)[:10]
    kept = chainrule.cat([(y == 0).nonzero().reshape(-1), rare])
    kept = kept[chainrule.randperm(len(kept))]
    return seen(net(30, 2), (x[kept], y[kept]))


@mistake("NaN in data", "NaN in the data")
def nan() -> Findings:
    x, y = table("wine")
    x[41, 2] = math.nan
    return seen(net(), (x, y))


@mistake("duplicate rows across the split", "duplicate rows across the split")
def duplicates() -> Findings:
    x, y = table("wine")
    model = net()
    held_out = (x[120:160], y[120:160])
    return inspect.doctor(model, F.cross_entropy, (x[:140], y[:140]), validation=held_out).findings


# --- the rate -------------------------------------------------------------------------------------


@mistake("rate 100 times too high", "rate too high")
def fast() -> Findings:
    return seen(net(64, 10), table("digits"), rate=1.0)


@mistake("rate 100 times too low", "rate too low")
def slow() -> Findings:
    return seen(net(), table("wine"), rate=1e-5)


# --- the start ------------------------------------------------------------------------------------


@mistake("equal units", "equal units")
def equal() -> Findings:
    model = net()
    nn.init.constant_(model[0].weight, 0.1)
    nn.init.constant_(model[2].weight, 0.1)
    return seen(model, table("wine"))


@mistake("dead layer", "dead layer")
def dead() -> Findings:
    model = net()
    nn.init.constant_(model[0].bias, -20.0)
    return seen(model, table("wine"))


@mistake("saturated layer", "saturated layer")
def saturated() -> Findings:
    model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Linear(16, 3))
    nn.init.normal_(model[0].weight, std=20.0)
    return seen(model, table("wine"))


@mistake("vanishing depth", "vanishing depth")
def vanishing() -> Findings:
    return seen(deep(nn.Sigmoid), table("wine"))


@mistake("exploding depth", "exploding depth")
def exploding() -> Findings:
    model = deep(nn.ReLU)
    for module in model:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=1.0)
    return seen(model, table("wine"))


@mistake("SELU with the wrong start", "SELU with the wrong start")
def selu_start() -> Findings:
    return seen(deep(nn.SELU, 4), table("wine"))


@mistake("SELU with the wrong dropout", "SELU with the wrong dropout")
def selu_dropout() -> Findings:
    model = models.SelfNormalizingMLP(13, [32, 32], 3)
    return seen(nn.Sequential(*list(model)[:2], nn.Dropout(0.2), *list(model)[2:]), table("wine"))


@mistake("exploding recurrence", "exploding recurrence")
def recurrence() -> Findings:
    model = models.SequenceModel(1, 16, 1, kind="rnn")
    for name, p in model.named_parameters():
        if "weight_hh" in name:
            nn.init.orthogonal_(p)
            with chainrule.no_grad():
                p.mul_(2.0)
        if "weight_ih" in name:
            nn.init.normal_(p, std=1e-4)
        if "bias_" in name:
            nn.init.zeros_(p)
    x = chainrule.randn(32, 24, 1)
    return seen(model, (x, x.cumsum(1) / 24), F.mse_loss)


# --- what learns ----------------------------------------------------------------------------------


@mistake("parameters missing from the optimizer", "parameters missing from the optimizer")
def missing() -> Findings:
    model = net()
    optimizer = optim.Adam(model[2].parameters(), lr=0.01)
    return inspect.doctor(model, F.cross_entropy, table("wine"), optimizer).findings


@mistake("frozen by mistake", "frozen by mistake")
def frozen() -> Findings:
    model = net()
    model[0].requires_grad_(False)
    return seen(model, table("wine"))


@mistake("batch norm on one sample", "batch norm on one sample")
def one_sample() -> Findings:
    x, y = table("wine")
    model = nn.Sequential(nn.Linear(13, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    loader = data.DataLoader(data.TensorDataset(x[:161], y[:161]), batch_size=32, shuffle=True)
    return seen(model, loader)


@mistake("constant prediction", "constant prediction")
def constant() -> Findings:
    model = net()
    optimizer = optim.SGD(model.parameters(), lr=0.05, weight_decay=2.0)
    trainer = train.Trainer(model, "cross_entropy", optimizer, doctor=True, progress=False)
    trainer.fit(table("wine"), epochs=20)
    return trainer.findings
