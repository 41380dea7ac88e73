"""Thirty sound runs, of the courses' networks and the embedded tables, on which the doctor has
to be silent: before training, beside it and after it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import Tensor, data, inspect, models, nn, optim, problems, train
from chainrule.inspect import Finding
from chainrule.nn import functional as F
from looking.planted import table

__all__ = ["HEALTHY"]

Findings = list[Finding]
Run = Callable[..., Findings]  # of a seed
HEALTHY: dict[str, Run] = {}


def healthy(name: str) -> Callable[[Callable[[], Findings]], Run]:
    """Lists a run."""

    def listed(run: Callable[[], Findings]) -> Run:
        def silent(seed: int = 0) -> Findings:
            chainrule.manual_seed(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return run()

        HEALTHY[name] = silent
        return silent

    return listed


def trained(
    model: nn.Module,
    loss: Any,
    given: tuple[Any, Tensor],
    optimizer: Any = None,
    epochs: int = 15,
    held_out: float = 0.2,
    **options: Any,
) -> Findings:
    """Trains with the doctor beside it; what it found."""
    x, y = given
    n = int((1 - held_out) * len(y))
    trainer = train.Trainer(model, loss, optimizer, doctor=True, progress=False, seed=0, **options)
    validation = (x[n:], y[n:]) if n < len(y) else None
    trainer.fit((x[:n], y[:n]), validation, epochs=epochs)
    return trainer.findings


def adam(rate: float = 0.001) -> Callable[[Any], optim.Optimizer]:
    return lambda parameters: optim.Adam(parameters, lr=rate)


def sgd(rate: float, momentum: float = 0.0) -> Callable[[Any], optim.Optimizer]:
    return lambda parameters: optim.SGD(parameters, lr=rate, momentum=momentum)


def numbers(name: str) -> tuple[Tensor, Tensor]:
    """A regression table with standardized targets as a column."""
    x, y = table(name)
    return x, ((y - y.mean()) / y.std()).reshape(-1, 1)


def pictures() -> tuple[Tensor, Tensor]:
    x, y = table("digits", scaled=False)
    return x.reshape(-1, 1, 8, 8) / 16, y


# --- embedded tables, as `chainrule fit` trains them ----------------------------------------------


def _of_table(name: str, inputs: int, outputs: int) -> None:
    @healthy(f"{name}, MLP 64-64 ReLU, Adam")
    def run() -> Findings:
        model = models.MLP(inputs, [64, 64], outputs)
        if outputs == 1:
            return trained(model, "mse", numbers(name), epochs=20)
        return trained(model, "cross_entropy", table(name), epochs=20)


for _name, _inputs, _outputs in (
    ("iris", 4, 3),
    ("wine", 13, 3),
    ("breast_cancer", 30, 2),
    ("digits", 64, 10),
    ("diabetes", 10, 1),
    ("linnerud", 5, 1),
):
    _of_table(_name, _inputs, _outputs)


@healthy("iris 4-8-3 of course 000: raw centimeters, batches of 5, Adam 0.001, 10 epochs")
def course_iris() -> Findings:
    x, y = table("iris", scaled=False)
    loader = data.DataLoader(data.TensorDataset(x[:105], y[:105]), batch_size=5)
    trainer = train.Trainer(
        models.MLP(4, [8], 3), nn.CrossEntropyLoss(), adam(), doctor=True, progress=False
    )
    trainer.fit(loader, (x[105:], y[105:]), epochs=10)
    return trainer.findings


@healthy("iris with ten hidden layers of 16 ReLU units from Kaiming's start")
def course_deep() -> Findings:
    model = models.MLP(4, [16] * 10, 3, "relu")
    for p in model.parameters():
        (nn.init.kaiming_normal_ if p.ndim > 1 else nn.init.zeros_)(p)
    return trained(model, "cross_entropy", table("iris"), epochs=15)


@healthy("wine, tanh 16-16, SGD with momentum")
def wine_tanh() -> Findings:
    return trained(
        models.MLP(13, [16, 16], 3, "tanh"), "cross_entropy", table("wine"), sgd(0.05, 0.9)
    )


@healthy("wine, one hidden layer of sigmoids, SGD 0.5")
def wine_sigmoid() -> Findings:
    return trained(models.MLP(13, [16], 3, "sigmoid"), "cross_entropy", table("wine"), sgd(0.5))


@healthy("wine, batch norm and dropout")
def wine_norm() -> Findings:
    model = models.MLP(13, [32, 32], 3, dropout=0.3, norm="batch")
    return trained(model, "cross_entropy", table("wine"), adam(0.01))


@healthy("breast cancer, logistic regression from zero")
def logistic() -> Findings:
    x, y = table("breast_cancer")
    model = nn.Linear(30, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return trained(model, "bce_with_logits", (x, y.float().reshape(-1, 1)), sgd(0.1))


@healthy("breast cancer, self-normalizing network with alpha dropout")
def snn() -> Findings:
    model = models.SelfNormalizingMLP(30, [32] * 4, 2, dropout=0.05)
    return trained(model, "cross_entropy", table("breast_cancer"), adam())


@healthy("digits, self-normalizing network of eight layers")
def snn_deep() -> Findings:
    return trained(models.SelfNormalizingMLP(64, [32] * 8, 10), "cross_entropy", table("digits"))


@healthy("digits, softmax regression from zero, SGD")
def softmax_regression() -> Findings:
    model = nn.Linear(64, 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return trained(model, "cross_entropy", table("digits"), sgd(0.05))


@healthy("digits as pictures, two convolutions")
def convolution() -> Findings:
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return trained(model, "cross_entropy", pictures(), adam(0.003), epochs=5)


@healthy("digits as pictures, LeNet's tanh and average pooling")
def lenet() -> Findings:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(64, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )
    return trained(model, "cross_entropy", pictures(), adam(0.002), epochs=5)


class _Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.last = nn.BatchNorm2d(width)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.last(self.second(F.relu(self.norm(self.first(x))))))


@healthy("digits as pictures, residual blocks that begin as the identity")
def residual() -> Findings:
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        _Block(8),
        _Block(8),
        _Block(8),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return trained(model, "cross_entropy", pictures(), adam(0.003), epochs=3)


@healthy("digits, autoencoder 64-32-8-32-64")
def autoencoder() -> Findings:
    x, _ = table("digits", scaled=False)
    x = x / 16
    return trained(models.Autoencoder(64, [32], 8), "mse", (x, x), adam(0.003), epochs=8)


@healthy("digits with sigmoid outputs and one-hot squared error")
def one_hot() -> Findings:
    x, y = table("digits")
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10), nn.Sigmoid())
    return trained(model, "mse", (x, F.one_hot(y, 10).float()), adam(0.01), epochs=8)


@healthy("digits, fine-tuning: a frozen trunk below a new head")
def tuned() -> Findings:
    model = models.MLP(64, [32], 10)
    trained(model, "cross_entropy", table("digits"), adam(0.003), epochs=5)
    for p in model[0].parameters():
        p.requires_grad_(False)
    model[2].reset_parameters()
    head = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    return trained(model, "cross_entropy", table("digits"), head, epochs=5)


@healthy("breast cancer, one class ten times as frequent, weights for classes")
def weighted() -> Findings:
    x, y = table("breast_cancer")
    rare = (y == 1).nonzero().reshape(-1)[:25]
    kept = chainrule.cat([(y == 0).nonzero().reshape(-1), rare])
    kept = kept[chainrule.randperm(len(kept))]
    return trained(
        models.MLP(30, [32], 2),
        "cross_entropy",
        (x[kept], y[kept]),
        adam(0.003),
        class_weight="balanced",
    )


# --- problems of the courses ----------------------------------------------------------------------


@healthy("xor, 2-4-1 tanh, Rprop")
def xor() -> Findings:
    problem = problems.boolean("xor")
    return trained(
        models.MLP(2, [4], 1, "tanh"),
        "bce_with_logits",
        (problem.inputs, problem.targets),
        "rprop",
        epochs=100,
        held_out=0,
    )


@healthy("two moons, 2-16-16-2, Adam 0.01")
def moons() -> Findings:
    problem = problems.moons()
    return trained(
        models.MLP(2, [16, 16], 2), "cross_entropy", (problem.inputs, problem.targets), adam(0.01)
    )


@healthy("spirals, 2-32-32-3 tanh")
def spirals() -> Findings:
    problem = problems.spirals()
    return trained(
        models.MLP(2, [32, 32], 3, "tanh"),
        "cross_entropy",
        (problem.inputs, problem.targets),
        adam(0.01),
        epochs=30,
    )


@healthy("a line y = 2x + 1, gradient descent")
def line() -> Findings:
    x = chainrule.linspace(-1, 1, 40).reshape(-1, 1)
    return trained(nn.Linear(1, 1), "mse", (x, 2 * x + 1), sgd(0.1), epochs=30, held_out=0)


@healthy("sin(x) by 1-32-32-1 tanh")
def sine() -> Findings:
    x = (chainrule.rand(256, 1) - 0.5) * 6
    return trained(models.MLP(1, [32, 32], 1, "tanh"), "mse", (x, chainrule.sin(x)), adam(0.005))


# --- series ---------------------------------------------------------------------------------------


def running_mean(count: int = 128, length: int = 12) -> tuple[Tensor, Tensor]:
    x = chainrule.randn(count, length, 1)
    return x, x.cumsum(1) / chainrule.arange(1, length + 1).reshape(1, -1, 1)


@healthy("running mean by an Elman network (course, example 7)")
def elman() -> Findings:
    model = models.SequenceModel(1, 16, 1, kind="rnn")
    return trained(model, "mse", running_mean(), adam(0.01), clip_norm=1.0)


@healthy("running mean by an LSTM (course, example 8)")
def lstm() -> Findings:
    return trained(models.SequenceModel(1, 16, 1), "mse", running_mean(), adam(0.01))


@healthy("next value of a chaotic series from the last four")
def series() -> Findings:
    values = [0.3]
    for _ in range(300):
        values.append(3.9 * values[-1] * (1 - values[-1]))
    s = chainrule.tensor(values)
    x = chainrule.stack([s[i : i + 290] for i in range(4)], 1)
    return trained(models.MLP(4, [32, 32], 1), "mse", (x, s[4:294].reshape(-1, 1)), adam(0.005))


@healthy("a loop of its own: gradients cleared, modes switched, gradients accumulated")
def own_loop() -> Findings:
    x, y = table("wine")
    model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer, loss = optim.Adam(model.parameters(), lr=0.01), nn.CrossEntropyLoss()
    with inspect.examining(model, optimizer, loss) as visit:
        for _ in range(5):
            model.train()
            for i in range(0, 128, 64):
                optimizer.zero_grad()
                for j in (i, i + 32):
                    (loss(model(x[j : j + 32]), y[j : j + 32]) / 2).backward()
                optimizer.step()
            model.eval()
            with chainrule.no_grad():
                loss(model(x[128:]), y[128:])
    return visit.findings
