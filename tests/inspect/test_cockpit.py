"""The cockpit against exact Hessians, per-sample gradients by a loop, and formulas."""

from __future__ import annotations

from typing import Any

import chainrule
import numpy as np
import pytest
from looking.drawn import assert_drawn_well, figure_of
from looking.nets import NETS, Net

from chainrule import func, inspect, models, nn, optim, train
from chainrule.inspect.training import readings
from chainrule.nn import functional as F

F64 = chainrule.float64


def in_double(name: str) -> Net:
    chainrule.manual_seed(0)
    net = NETS[name]()
    net.model.double().eval()  # batch normalization of one sample alone is another function
    several = isinstance(net.inputs, tuple)
    net.inputs = tuple([x.double() for x in net.inputs]) if several else net.inputs.double()
    return net


def called(net: Net, params: Any, inputs: Any) -> Any:
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    return func.functional_call(net.model, params, args)


def exact_hessian(net: Net) -> tuple[np.ndarray, np.ndarray]:
    """The matrix by func.hessian, block by block, and the gradient."""
    params = {n: p.detach() for n, p in net.model.named_parameters()}

    def loss(p: Any) -> Any:
        return net.loss(called(net, p, net.inputs), net.targets)

    blocks = func.hessian(loss)(params)
    rows = [
        np.concatenate(
            [blocks[a][b].detach().numpy().reshape(params[a].numel(), -1) for b in params], 1
        )
        for a in params
    ]
    gradient = func.grad(loss)(params)
    flat = np.concatenate([gradient[n].detach().numpy().ravel() for n in params])
    return np.concatenate(rows, 0), flat


def per_sample(net: Net) -> np.ndarray:
    """The gradient of each sample, by a loop over samples of their own."""
    rows = []
    for i in range(len(net.targets)):
        several = isinstance(net.inputs, tuple)
        x = tuple([a[i : i + 1] for a in net.inputs]) if several else net.inputs[i : i + 1]
        params = {n: p.detach() for n, p in net.model.named_parameters()}

        def loss(p: Any, x: Any = x, i: int = i) -> Any:
            return net.loss(called(net, p, x), net.targets[i : i + 1])

        g = func.grad(loss)(params)
        rows.append(np.concatenate([g[n].detach().numpy().ravel() for n in params]))
    return np.array(rows)


@pytest.mark.parametrize("name", list(NETS))
def test_all_instruments_are_exact_on_small_networks(name: str) -> None:
    net = in_double(name)
    rate = 0.1
    optimizer = optim.SGD(net.model.parameters(), lr=rate)
    seen = inspect.cockpit(net.model, net.loss, net.data, optimizer).last
    hessian, g = exact_hessian(net)
    values = np.linalg.eigvalsh((hessian + hessian.T) / 2)[::-1]
    np.testing.assert_allclose(seen.eigenvalues, values[:3], rtol=1e-6, atol=1e-9)
    assert (seen.trace, seen.trace_error) == (pytest.approx(np.trace(hessian), rel=1e-6), 0.0)
    assert seen.gradient_norm == pytest.approx(np.linalg.norm(g), rel=1e-6)
    start = 0
    for block in seen.layers:
        part = slice(start, start + block.size)
        own = hessian[part, part]
        assert block.trace == pytest.approx(np.trace(own), rel=1e-6, abs=1e-9)
        assert block.top == pytest.approx(np.linalg.eigvalsh((own + own.T) / 2)[-1], rel=1e-6)
        norm = np.linalg.norm(g[part])
        assert seen.layer_gradient_norms[block.name] == pytest.approx(norm, rel=1e-6)
        start += block.size
    bend = g @ hessian @ g
    if bend > 0:  # along -g the parabola has its minimum after |g|^2 / g H g
        assert seen.alpha == pytest.approx(rate * bend / (g @ g) - 1, rel=1e-6)
    else:
        assert np.isnan(seen.alpha)
    assert seen.update_norm == pytest.approx(rate * np.linalg.norm(g), rel=1e-6)
    assert seen.curve["loss"][seen.curve["place"].index(0.0)] == pytest.approx(seen.loss)
    _check_noise(seen.noise, per_sample(net))


def _check_noise(noise: Any, g: np.ndarray) -> None:
    """The formulas of the papers, from the gradients of single samples."""
    n, mean = len(g), g.mean(0)
    square = mean @ mean
    assert noise.samples == n
    norms, along = (g**2).sum(1), g @ mean
    pairs = n * (n - 1)
    assert noise.norm_test == pytest.approx((norms.sum() / square - n) / pairs, rel=1e-6)
    inner = ((along**2).sum() / square**2 - n) / pairs
    assert noise.inner_product_test == pytest.approx(inner, rel=1e-6)
    across = (norms / square - along**2 / square**2).sum() / pairs
    assert noise.orthogonality_test == pytest.approx(across, rel=1e-6)
    assert noise.norm_test == pytest.approx(noise.inner_product_test + noise.orthogonality_test)
    spread = g.var(0)
    alive = spread > 1e-25
    ratio = (mean**2)[alive] / spread[alive]
    assert noise.signal_to_noise == pytest.approx(ratio.mean(), rel=1e-5)
    stop = 1 - n * (ratio * (n - 1) / n).mean()
    assert noise.early_stopping == pytest.approx(stop, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_alpha_on_a_parabola(rate: float) -> None:
    """L = w^2 / 2: a rate of 1 reaches the minimum, a rate of 2 the same height beyond it."""
    model = nn.Linear(1, 1, bias=False, dtype=F64)
    data = chainrule.ones(2, 1, dtype=F64), chainrule.zeros(2, 1, dtype=F64)
    sgd = optim.SGD(model.parameters(), lr=rate)
    seen = inspect.cockpit(model, lambda y, t: 0.5 * F.mse_loss(y, t), data, sgd).last
    assert seen.alpha == pytest.approx(rate - 1)
    np.testing.assert_allclose(seen.curve["loss"], seen.curve["parabola"], atol=1e-12)


def test_large_models_are_read_from_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way without the matrix gives the same eigenvalues, and a trace within its error."""
    net = in_double("residual")
    exact = inspect.cockpit(net.model, net.loss, net.data).last
    monkeypatch.setattr(readings, "EXACT", 0)
    found = inspect.cockpit(net.model, net.loss, net.data, products=400).last
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, rtol=1e-4)
    assert 0 < found.trace_error < 0.2 * abs(exact.trace)
    assert abs(found.trace - exact.trace) < 5 * found.trace_error
    for a, b in zip(found.layers, exact.layers, strict=True):
        assert (a.name, a.size) == (b.name, b.size)
        assert a.top == pytest.approx(b.top, rel=1e-3)
    assert sum(a.trace for a in found.layers) == pytest.approx(found.trace)


# --- live -----------------------------------------------------------------------------------------


def problem() -> tuple[chainrule.Tensor, chainrule.Tensor]:
    x = chainrule.randn(64, 4, generator=chainrule.Generator().manual_seed(0))
    return x, (x[:, 0] * x[:, 1] > 0).long()


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lbfgs"])
def test_live_in_a_trainer(optimizer: str) -> None:
    chainrule.manual_seed(0)
    model = models.MLP(4, [6], 2)
    start = {n: p.detach().clone() for n, p in model.named_parameters()}
    seen = inspect.Cockpit(every=3)
    trainer = train.Trainer(model, "cross_entropy", optimizer, callbacks=[seen], progress=False)
    trainer.fit(problem(), epochs=4, batch_size=32)
    assert [r.step for r in seen.readings] == [0, 3, 6]
    assert seen.readings[0].distance == 0
    assert min(r.distance for r in seen.readings[1:]) > 0
    assert all(r.update_norm > 0 for r in seen.readings)
    if optimizer != "lbfgs":  # whose steps on a batch lead anywhere
        moved = sum(float(((p - start[n]) ** 2).sum()) for n, p in model.named_parameters()) ** 0.5
        assert seen.readings[1].distance < seen.last.distance < moved


def test_the_loss_is_that_of_the_trainer_with_its_weights() -> None:
    chainrule.manual_seed(0)
    seen = inspect.Cockpit(every=1)
    trainer = train.Trainer(
        models.MLP(4, [6], 2),
        "cross_entropy",
        callbacks=[seen],
        class_weight=[1.0, 3.0],
        progress=False,
    )
    history = trainer.fit(problem(), epochs=2, batch_size=64)
    assert seen.values("loss") == pytest.approx(history["loss"], rel=1e-5)


def test_watching_by_the_cockpit_changes_nothing() -> None:
    results = []
    for callbacks in ([], [inspect.Cockpit(every=1)]):
        chainrule.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 2))
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        trainer = train.Trainer(
            model, "cross_entropy", optimizer, callbacks=callbacks, progress=False, seed=0
        )
        trainer.fit(problem(), epochs=2, batch_size=32)
        results.append([v.numpy() for v in model.state_dict().values()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_around_a_loop_of_ones_own_the_first_reading_is_that_of_the_function() -> None:
    chainrule.manual_seed(0)
    model, (x, y) = models.MLP(4, [6], 2), problem()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    once = inspect.cockpit(model, F.cross_entropy, (x, y), optimizer).last
    with inspect.Cockpit(model, F.cross_entropy, (x, y), optimizer, every=2) as seen:
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert [r.step for r in seen.readings] == [0, 2]
    first = seen.readings[0]
    assert (first.alpha, first.trace) == pytest.approx((once.alpha, once.trace), rel=1e-4)
    assert seen.values("alpha")[0] == first.alpha
    assert not any(optimizer._hooks.values())


def test_every_instrument_has_a_sentence_and_pictures_can_be_read() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    model, (x, y) = models.MLP(4, [6], 2), problem()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    seen = inspect.Cockpit(every=4)
    train.Trainer(model, "cross_entropy", optimizer, callbacks=[seen], progress=False).fit(
        (x, y), epochs=6, batch_size=32
    )
    said = str(seen)
    for name in ("alpha", "top eigenvalues", "trace", "signal to noise", "norm test", "distance"):
        assert name in said
    assert "would diverge" in said
    for result in (seen, inspect.cockpit(model, F.cross_entropy, (x, y), optimizer)):
        drawn = result.plot()
        try:
            assert_drawn_well(drawn)
        finally:
            plt.close(figure_of(drawn))


def test_what_cannot_be_read_says_why() -> None:
    model, (x, y) = models.MLP(4, [6], 2), problem()
    one = inspect.cockpit(model, F.cross_entropy, (x[:1], y[:1]))
    assert one.last.noise is None
    assert "a batch of two or more" in str(one)
    weighted = nn.CrossEntropyLoss(weight=chainrule.tensor([1.0, 5.0]))
    assert "neither the mean nor the sum" in str(inspect.cockpit(model, weighted, (x, y)))
    assert "give an optimizer" in str(one)
    with pytest.raises(ValueError, match="the loss must be one number"):
        inspect.cockpit(model, lambda out, t: F.cross_entropy(out, t, reduction="none"), (x, y))
    other = optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    with pytest.raises(ValueError, match="no parameter of this model"):
        inspect.cockpit(model, F.cross_entropy, (x, y), other)
    with pytest.raises(ValueError, match="asks for a gradient"):
        inspect.cockpit(models.MLP(4, [6], 2).requires_grad_(False), F.cross_entropy, (x, y))
    with pytest.raises(ValueError, match=r"loss, data, optimizer missing"), inspect.Cockpit(model):
        pass
    with pytest.raises(ValueError, match="every and eigenvalues"):
        inspect.Cockpit(every=0)
    with pytest.raises(ValueError, match="no instrument 'speed'"):
        one.values("speed")
