"""The doctor names planted mistakes and is silent on sound runs; its page says what it does."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chainrule
import pytest
from chainrule import data, inspect, models, nn, optim, train
from chainrule.inspect.health.findings import apply
from chainrule.nn import functional as F
from looking.healthy import HEALTHY
from looking.planted import MISTAKES, net, table

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "doctor.md").read_text("utf-8")

# Those that take a tenth of a second; all of them run by `make doctor`.
QUICK = [
    "iris 4-8-3 of course 000: raw centimeters, batches of 5, Adam 0.001, 10 epochs",
    "linnerud, MLP 64-64 ReLU, Adam",
    "wine, tanh 16-16, SGD with momentum",
    "wine, batch norm and dropout",
    "xor, 2-4-1 tanh, Rprop",
    "a line y = 2x + 1, gradient descent",
    "next value of a chaotic series from the last four",
    "a loop of its own: gradients cleared, modes switched, gradients accumulated",
]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_named(name: str) -> None:
    rule, run = MISTAKES[name]
    found = run()
    assert {f.rule for f in found} == {rule}
    for f in found:
        assert f.layer
        assert f.sentence
        assert f.remedy
        assert math.isfinite(f.number)
        assert rule in str(f)
        assert f.remedy in str(f)


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_said_of_a_sound_run(name: str) -> None:
    assert HEALTHY[name]() == []


@pytest.mark.parametrize("name", ["iris", "wine", "diabetes"])
def test_nothing_is_said_of_the_network_that_is_chosen_for_a_table(name: str) -> None:
    table = data.embedded(name)
    settings = train.Settings(doctor=True)
    network = train.fit_table(table.table, table.target, settings=settings, progress=False)
    assert network.about["findings"] == []


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len(MISTAKES) == 26
    assert len(HEALTHY) >= 30


def test_the_page_tells_every_rule_mistake_and_run() -> None:
    spec = importlib.util.spec_from_file_location("table", ROOT / "tools" / "doctor_table.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for line in tool.rules():
        assert line in PAGE, "run `make doctor`"
    for name in (*MISTAKES, *HEALTHY):
        assert f"\n| {name} |" in PAGE, "run `make doctor`"


# --- sound things that look like mistakes ---------------------------------------------------------


def rules(model: nn.Module, given: Any, loss: Any = F.cross_entropy, **options: Any) -> list[str]:
    return inspect.doctor(model, loss, given, **options).rules


def test_a_frozen_trunk_is_no_mistake_and_a_frozen_head_is_one() -> None:
    model = net()
    model[0].requires_grad_(False)
    assert rules(model, table("wine")) == []
    model[0].requires_grad_(True)
    model[2].requires_grad_(False)
    assert rules(model, table("wine")) == ["frozen by mistake"]


def test_twins_in_data_of_few_values_are_no_leak_between_parts() -> None:
    x = (chainrule.rand(200, 3) > 0.5).float()
    y = (x.sum(1) > 1).long()
    both = (x[:150], y[:150])
    assert rules(models.MLP(3, [8], 2), both, validation=(x[150:], y[150:])) == []


def test_weights_of_classes_answer_an_imbalance() -> None:
    x, y = chainrule.randn(120, 3), (chainrule.arange(120) < 5).long()
    y = y[chainrule.randperm(120)]
    model = models.MLP(3, [8], 2)
    assert rules(model, (x, y)) == ["class imbalance"]
    assert rules(model, (x, y), nn.CrossEntropyLoss(weight=chainrule.tensor([1.0, 20.0]))) == []
    assert rules(model, (x, y, chainrule.ones(120))) == []


def test_labels_from_one() -> None:
    x, y = table("wine")
    assert rules(net(13, 4), (x, y + 1)) == ["classes do not start at 0"]


def test_sorted_numbers() -> None:
    x = chainrule.linspace(-1, 1, 128).reshape(-1, 1)
    loader = data.DataLoader(data.TensorDataset(x, x**3), batch_size=16)
    assert rules(models.MLP(1, [8], 1), loader, F.mse_loss) == ["sorted data"]
    shuffled = data.DataLoader(data.TensorDataset(x, x**3), batch_size=16, shuffle=True)
    assert rules(models.MLP(1, [8], 1), shuffled, F.mse_loss) == []


def test_a_sigmoid_before_the_logistic_loss() -> None:
    x, y = table("breast_cancer")
    model = nn.Sequential(nn.Linear(30, 1), nn.Sigmoid())
    target = y.float().reshape(-1, 1)
    found = rules(model, (x, target), F.binary_cross_entropy_with_logits)
    assert found == ["sigmoid before the logistic loss"]


def test_an_error_of_the_loss_is_the_finding() -> None:
    x, y = table("diabetes")
    found = inspect.doctor(models.MLP(10, [8], 1), F.mse_loss, (x, y / 100))
    assert found.rules == ["(N, 1) against (N,)"]
    assert "a loss does not broadcast" in found.findings[0].sentence
    assert "not checked: the network" in str(found)


def test_a_cut_graph() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(13, 8), nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x).detach())

    found = inspect.doctor(Cut(), F.cross_entropy, table("wine"))
    assert found.rules == ["no gradient"]
    assert found.findings[0].layer == "first.weight"


def test_unscaled_targets() -> None:
    x, y = table("diabetes")
    assert rules(models.MLP(10, [8], 1), (x, y.reshape(-1, 1)), F.mse_loss) == ["unscaled targets"]


def test_a_curve_that_rises_or_stays() -> None:
    assert [f.rule for f in apply("curves", [1.0, 1.5, 4.0])] == ["loss rises"]
    assert [f.rule for f in apply("curves", [1.0] * 12)] == ["loss does not fall"]
    assert apply("curves", [1.0, 0.9, 0.8]) == []


# --- the loop -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _unwarned() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_training_in_evaluation_mode_after_validation() -> None:
    x, y = table("wine")
    model = nn.Sequential(nn.Linear(13, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with _unwarned(), inspect.examining(model, optimizer) as visit:
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            model.eval()
    assert [f.rule for f in visit.findings] == ["evaluation mode in training"]
    assert visit.findings[0].number == 0.75


def test_validation_in_training_mode_with_gradients() -> None:
    x, y = table("wine")
    model = nn.Sequential(nn.Linear(13, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with _unwarned(), inspect.examining(model, optimizer) as visit:
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            F.cross_entropy(model(x), y).item()
    assert [f.rule for f in visit.findings] == ["training mode in validation"]


def test_the_loop_is_left_as_it_was() -> None:
    x, y = table("wine")

    def weights(watched: bool) -> list[float]:
        chainrule.manual_seed(3)
        model, loss = net(), nn.CrossEntropyLoss()
        optimizer = optim.Adam(model.parameters(), lr=0.01)

        def loop() -> None:
            for _ in range(3):
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()

        if watched:
            with inspect.examining(model, optimizer, loss):
                loop()
            assert not optimizer._hooks["step_post"]
        else:
            loop()
        return model[0].weight.flatten().tolist()

    assert weights(True) == weights(False)


def test_a_trainer_learns_the_same_with_a_doctor() -> None:
    x, y = table("wine")

    def run(doctor: bool, seed: int | None) -> list[float]:
        chainrule.manual_seed(3)
        model = nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
        trainer = train.Trainer(model, "cross_entropy", doctor=doctor, progress=False, seed=seed)
        trainer.fit((x[:100], y[:100]), (x[100:], y[100:]), epochs=3)
        assert trainer.findings == []
        return model[0].weight.flatten().tolist()

    assert run(True, None) == run(False, None)
    assert run(True, 5) == run(False, 5)


def test_a_trainer_warns_once_of_each_mistake() -> None:
    x, y = table("wine")
    model = net(13, 3, nn.Softmax(1))
    trainer = train.Trainer(model, "cross_entropy", doctor=True, progress=False)
    with pytest.warns(inspect.HealthWarning, match="softmax before cross-entropy") as seen:
        trainer.fit((x, y), epochs=2)
    assert len(seen) == 1
    assert [f.rule for f in trainer.findings] == ["softmax before cross-entropy"]


def test_findings_survive_a_checkpoint(tmp_path: Path) -> None:
    x, y = table("wine")

    def trainer() -> train.Trainer:
        model = net(13, 3, nn.Softmax(1))
        return train.Trainer(model, "cross_entropy", doctor=True, progress=False)

    first, second = trainer(), trainer()
    with _unwarned():
        first.fit((x, y), epochs=1)
        first.save_checkpoint(tmp_path / "run")
        second.fit((x, y), epochs=2, resume=tmp_path / "run")
    assert first.findings[0].rule == second.findings[0].rule
    assert len(second.findings) == 1


# --- what cannot be looked at ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (iter([(1, 2)]), "data is an iterator"),
        (5, "must be a pair"),
        ((chainrule.ones(3, 2),), "got 1 parts"),
        ((chainrule.ones(0, 2), chainrule.ones(0)), "no samples"),
        ([], "got 0 parts"),
    ],
)
def test_data_that_is_none_is_refused(given: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"doctor: .*{says}"):
        inspect.doctor(nn.Linear(2, 1), F.mse_loss, given)


def test_a_batch_of_one_is_looked_at() -> None:
    found = inspect.doctor(net(), F.cross_entropy, (chainrule.randn(1, 13), chainrule.tensor([1])))
    assert found.rules == []


def test_a_loader_in_the_middle_of_an_epoch_stays_there() -> None:
    x, y = table("wine")
    generator = chainrule.Generator().manual_seed(1)
    loader = data.DataLoader(
        data.TensorDataset(x, y), batch_size=32, shuffle=True, generator=generator
    )
    batches = iter(loader)
    next(batches)
    state, place = generator.get_state(), loader.state_dict()["position"]
    inspect.doctor(net(), F.cross_entropy, loader)
    assert chainrule.equal(generator.get_state(), state)
    assert loader.state_dict()["position"] == place
