"""The summary of a network: its rows add up, its numbers are those of the network, and of one that
fails it shows how far it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from looking.nets import NETS

import chainrule
from chainrule import Tensor, inspect, models, nn
from chainrule.graph import Node
from chainrule.inspect.core.arguments import call, tensors
from chainrule.inspect.core.tracing import trace
from chainrule.inspect.structure.memory import memory_of, owner
from chainrule.nn import functional as F


def made(name: str) -> Any:
    chainrule.manual_seed(0)
    return NETS[name]()


# --- parameters and cost --------------------------------------------------------------------------


def test_the_numbers_of_the_courses() -> None:
    """L15, L16: 20 kernels of 5x5 have 520 parameters, a dense layer 784-30 has 23,550."""
    convolution = inspect.summary(nn.Conv2d(1, 20, 5), input_size=(1, 1, 28, 28))
    assert convolution.parameters == 520
    assert convolution.macs == 20 * 25 * 24**2
    dense = inspect.summary(nn.Linear(784, 30), input_size=(1, 784))
    assert (dense.parameters, dense.macs) == (23550, 784 * 30)


@pytest.mark.parametrize("name", list(NETS))
@pytest.mark.parametrize("depth", [None, 0, 1])
def test_the_rows_add_up(name: str, depth: int | None) -> None:
    net = made(name)
    told = inspect.summary(net.model, net.inputs, depth=depth)
    assert told.parameters == sum(r.parameters for r in told.rows)
    assert told.parameters == sum(p.numel() for p in net.model.parameters())
    assert told.macs == inspect.count(net.model, net.inputs).macs
    assert told.kept_bytes == sum(r.memory for r in told.rows)
    assert max(r.depth for r in told.rows) <= (depth if depth is not None else 9)


def test_reused_modules_have_a_row_for_each_call() -> None:
    net = made("residual")
    told = inspect.summary(net.model, net.inputs)
    first, second = (r for r in told.rows if r.path == "again")
    assert (first.parameters, second.parameters, second.reused) == (148, 0, True)
    assert first.macs == second.macs == 4 * 36 * 4 * 4 * 9
    assert "reused" in str(told)


def test_shared_parameters_are_counted_once_and_marked() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 7)
            self.out.weight = self.table.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.table(x))

    told = inspect.summary(Tied(), input_size=(3, 2))
    table, out = told.rows[1:]
    assert (table.parameters, out.parameters, out.shared) == (28, 7, True)
    assert told.parameters == 35
    assert "+shared" in str(told)
    assert told.disk_bytes == 35 * 4


def test_frozen_parameters_and_buffers() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    model[0].requires_grad_(False)
    told = inspect.summary(model, input_size=(2, 1, 5, 5), columns=("trainable", "parameters"))
    assert (told.trainable, told.frozen, told.buffers) == (4, 20, 5)
    assert told.gradient_bytes == 16
    assert [r.trainable for r in told.rows] == [0, 0, 4]


def test_several_inputs_and_named_outputs() -> None:
    net = made("two_inputs")
    told = inspect.summary(net.model, input_size=[(5, 3), (5, 2)])
    assert told.rows[0].input == [(5, 3), (5, 2)]
    assert told.rows[0].output == {"logits": (5, 2), "hidden": (5, 4)}
    assert told.macs == 5 * (3 * 4 + 2 * 4 + 4 * 2)
    by_name = inspect.summary(net.model, input_size={"a": (5, 3), "b": (5, 2)})
    assert by_name.rows[0].input == {"a": (5, 3), "b": (5, 2)}


def test_functional_code_belongs_to_the_module_that_runs_it() -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.weight = nn.Linear(3, 4), nn.Parameter(chainrule.ones(5, 4))

        def forward(self, x: Tensor) -> Tensor:
            h = F.linear(x, self.inner.weight, self.inner.bias)
            return chainrule.func.vmap(lambda v: self.weight @ v)(h)

    told = inspect.summary(Functional(), input_size=(2, 3))
    assert told.rows[0].macs == 2 * 3 * 4 + 2 * 4 * 5
    assert told.rows[0].parameters == told.parameters == 36
    assert told.unused == {}


def test_parameters_that_nothing_reads_are_named() -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.spare = nn.Linear(3, 4), nn.Linear(4, 2)
            self.scale = nn.Parameter(chainrule.ones(5))

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    told = inspect.summary(Forgetful(), input_size=(2, 3))
    assert told.unused == {"": 5, "spare": 10}
    assert "not used       parameters of Forgetful (5), spare (10)" in str(told)
    attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert inspect.summary(attention, input_size=(2, 3, 8)).unused == {}


def test_rows_add_up_where_weights_are_read_without_a_call() -> None:
    told = inspect.summary(nn.TransformerEncoderLayer(8, 2, 16), input_size=(3, 2, 8))
    assert sum(r.parameters for r in told.rows) == told.parameters
    (attention,) = (r for r in told.rows if r.kind == "MultiheadAttention")
    assert attention.parameters == 4 * 8 * 8 + 4 * 8


def test_a_packed_sequence_is_one_argument() -> None:
    from chainrule.nn.utils.rnn import pack_padded_sequence

    packed = pack_padded_sequence(chainrule.ones(7, 2, 3), chainrule.tensor([7, 4]))
    told = inspect.summary(nn.GRU(3, 5), packed)
    assert told.error is None
    assert told.macs == 7 * 2 * 3 * 5 * (3 + 5)


def test_functions_of_the_user_and_checkpoints_count_what_is_in_them() -> None:
    from chainrule.utils.checkpoint import checkpoint

    class Gram(chainrule.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x @ x.mT

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.inner, Gram.apply(x), use_reentrant=False)

    assert inspect.count(Both(), chainrule.ones(4, 2)).macs == 4 * 4 * 2 + 4 * 4 * 3


READY = {
    "LeNet": (lambda: models.LeNet(), (2, 1, 32, 32), 2 * 416520),
    "MLP": (lambda: models.MLP(784, [100], 10), (3, 784), 3 * (784 * 100 + 100 * 10)),
    "ResNet": (lambda: models.ResNet(8, width=4), (2, 3, 16, 16), None),
    "MnistConvNet": (lambda: models.MnistConvNet(), (1, 1, 28, 28), None),
    "CifarNet": (lambda: models.CifarNet(), (1, 3, 32, 32), None),
}


@pytest.mark.parametrize("name", list(READY))
def test_ready_networks(name: str) -> None:
    """Independently: each convolution and dense layer by its own formula."""
    build, size, known = READY[name]
    model = build().eval()
    told = inspect.summary(model, input_size=size)
    assert told.error is None
    expected = 0
    seen = trace("test", model, chainrule.zeros(*size))
    for c in seen.calls:
        m: Any = c.module
        if isinstance(m, nn.Conv2d):
            k, (n, _, h, w) = m.kernel_size, c.outputs[0].shape
            places = (k if isinstance(k, int) else k[0]) * (k if isinstance(k, int) else k[1])
            expected += n * h * w * m.out_channels * (m.in_channels // m.groups) * places
        elif isinstance(m, nn.Linear):
            expected += c.outputs[0].numel() * m.in_features
    assert told.macs == expected
    if known is not None:
        assert told.macs == known


# --- memory ---------------------------------------------------------------------------------------


def kept_by_the_graph(model: nn.Module, inputs: Any) -> int:
    """Walks the graph of an ordinary pass and sums what its nodes hold."""
    out = call(model, "test", inputs)
    given = [*model.parameters(), *model.buffers(), *tensors(inputs)]
    known = {id(owner(t.array)) for t in given}
    held: dict[int, Any] = {}
    nodes = [t._node for t in tensors(out) if t._node is not None]
    met = set(map(id, nodes))
    for node in nodes:
        out_arrays = node.out if isinstance(node.out, tuple) else (node.out,)
        saved = [t.array for t in node.saved or () if t is not None]
        for array in (*saved, *out_arrays):
            if array is not None:
                whole = owner(getattr(array, "array", array))
                held[id(whole)] = whole
        for edge in node.edges:
            if isinstance(edge, Node) and id(edge) not in met:
                met.add(id(edge))
                nodes.append(edge)
    return sum(a.nbytes for key, a in held.items() if key not in known)


@pytest.mark.parametrize("name", list(NETS))
def test_memory_is_what_the_graph_keeps(name: str) -> None:
    """A batch normalization keeps a mean and a deviation for each channel when it runs as one."""
    net = made(name)
    kept = memory_of(trace("test", net.model, net.inputs, gradients=True)).kept
    real = kept_by_the_graph(net.model, net.inputs)
    assert abs(kept - real) <= (32 if name == "residual" else 0)


def test_memory_by_hand() -> None:
    """(6, 8) numbers after the activation are kept; two of that size are alive at once."""
    told = inspect.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), input_size=(6, 4))
    assert (told.kept_bytes, told.forward_bytes, told.input_bytes) == (192, 384, 96)
    assert told.training_bytes == told.parameter_bytes * 2 + 96 + 192
    frozen = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).requires_grad_(False)
    assert inspect.summary(frozen, input_size=(6, 4)).kept_bytes == 0


def test_views_are_free_and_deep_passes_give_memory_back() -> None:
    class Views(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            h = x * 2
            for _ in range(5):
                h = (h.reshape(2, -1).mT * 1.5).mT.reshape(x.shape)
            return h

    told = inspect.summary(Views(), input_size=(2, 8))
    assert told.forward_bytes == 2 * 2 * 8 * 4


def test_size_on_disk(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(300, 100), nn.BatchNorm1d(100))
    chainrule.save(model.state_dict(), tmp_path / "net.safetensors")
    written = (tmp_path / "net.safetensors").stat().st_size
    told = inspect.summary(model).disk_bytes
    assert told <= written <= told + 2000


# --- inputs ---------------------------------------------------------------------------------------


def test_inputs_are_made_in_the_model_s_type() -> None:
    told = inspect.summary(nn.Linear(3, 2).double(), input_size=(4, 3))
    assert told.error is None
    assert told.input_bytes == 4 * 3 * 8


def test_an_embedding_gets_whole_numbers() -> None:
    class Text(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(9, 4), nn.Embedding(5, 4)
            self.head = nn.Linear(5, 2)

        def forward(self, x: Tensor, where: Tensor, more: Tensor) -> Tensor:
            h = self.words(x[:, :2]) + self.places(where)
            return self.head(chainrule.cat([h.mean(1), more], -1))

    told = inspect.summary(Text(), input_size=[(3, 4), (3, 2), (3, 1)])
    assert told.error is None
    assert told.rows[0].output == (3, 2)


def test_without_inputs_the_parameters_are_listed() -> None:
    told = inspect.summary(models.LeNet())
    assert told.parameters == 61706
    assert (told.called, told.macs) == (False, 0)
    assert "give inputs or input_size for shapes" in str(told)
    assert [r.parameters for r in told.rows if r.path == "c1"] == [156]


def test_a_lazy_model_stays_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU())
    told = inspect.summary(model, input_size=(2, 3))
    assert told.parameters == 16
    assert type(model[0]).__name__ == "LazyLinear"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_size": (2, -3)}, "input_size must be a size with the batch"),
        ({"input_size": 7}, "input_size must be a size with the batch"),
        ({"input_size": ()}, "input_size must be a size with the batch"),
        ({"input_size": (2, 3), "inputs": chainrule.ones(2, 3)}, "and not both"),
        ({"input_size": (2, 3), "columns": ("sizes",)}, "there is no column 'sizes'; there are"),
        ({"input_size": (2, 3), "depth": -1}, "depth must not be negative, got -1"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        inspect.summary(nn.Linear(3, 2), **options)


# --- what is printed ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ResNet", "LeNet"])
def test_it_fits_a_terminal(name: str) -> None:
    build, size, _ = READY[name]
    text = str(inspect.summary(build(), input_size=size))
    assert max(map(len, text.splitlines())) <= 120
    assert text.isascii()


def test_of_many_shapes_some_are_shown() -> None:
    from chainrule.inspect.structure.table import shape_text

    assert shape_text([(2, 3)] * 3) == "3 x (2, 3)"
    assert shape_text([(20, 30, 40), None, (50,), (60, 70, 80)]) == "(20, 30, 40) (50,) +1 more"
    assert shape_text({"a": (1,), "b": [(2,), (3,)]}) == "a (1,) b (2,) (3,)"
    assert shape_text([None]) == "-"


def test_the_bars_of_a_deep_network_are_few() -> None:
    pytest.importorskip("matplotlib").use("agg")
    deep = nn.Sequential(*[nn.Linear(2, 2) for _ in range(70)], nn.Linear(2, 90))
    told = inspect.summary(deep, input_size=(1, 2))
    drawn = told.plot()
    assert len(drawn[0].patches) == 40
    assert drawn[0].get_yticklabels()[-1].get_text() == "70"


def test_columns_are_chosen() -> None:
    chosen = ("receptive_field", "initializer", "flops", "output")
    text = str(inspect.summary(models.LeNet(), input_size=(1, 1, 32, 32), columns=chosen))
    assert text.splitlines()[0].split() == ["layer", "initializer", "output", "sees", "FLOPs"]


def test_an_unknown_cost_is_named() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return chainrule.linalg.eigvalsh(x @ x.mT)

    told = inspect.summary(Spectrum(), input_size=(3, 3), columns=("flops",))
    assert told.unknown == ["eigvalsh"]
    assert "not counted    eigvalsh" in str(told)
    assert "eigvalsh, whose cost depends on the values" in str(
        inspect.count(Spectrum(), input_size=(3, 3))
    )


def test_its_numbers_can_be_taken_away() -> None:
    told = json.loads(
        json.dumps(inspect.summary(models.LeNet(), input_size=(1, 1, 32, 32)).to_dict())
    )
    assert told["rows"][1]["output"] == [1, 6, 28, 28]
    assert told["error"] is None
    assert told["frozen"] == 0


# --- networks that fail ---------------------------------------------------------------------------


class Broken(nn.Module):
    """Layer 7 of the second part does not fit."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(8, 8) for _ in range(9)]
        layers[6] = nn.Linear(5, 8)
        self.stem, self.body = nn.Linear(4, 8), nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.stem(x))


def test_a_failing_network_is_listed_up_to_the_error() -> None:
    told = inspect.summary(Broken(), chainrule.ones(2, 4))
    assert isinstance(told.error, RuntimeError)
    assert [r.path for r in told.rows] == ["", "stem", "body", *[f"body.{i}" for i in range(7)]]
    assert [r.path for r in told.rows if r.failed] == ["body.6"]
    text = str(told)
    assert "! 6 Linear" in text
    assert "RuntimeError: linear: input of shape (2, 8)" in text
    assert "in layer 'body.6' (Linear), marked !, which was given (2, 8)" in text
    assert told.to_dict()["error"].startswith("RuntimeError: linear")
    drawn = inspect.draw(Broken(), chainrule.ones(2, 4))
    assert [b.name for b in drawn.boxes if b.kind == "failed"] == ["body", "body.6"]


def test_a_failing_function_marks_the_module_that_called_it() -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) @ chainrule.ones(5, 5)

    told = inspect.summary(Functional(), input_size=(2, 3))
    drawn = inspect.draw(Functional(), chainrule.ones(2, 3))
    assert "failed" in [b.kind for b in drawn.boxes]
    assert "matmul" in drawn.svg
    assert [(r.path, r.failed) for r in told.rows] == [("", True), ("inner", False)]
    assert "in Functional itself, marked !" in str(told)
    assert "made from input_size" in str(told)


# --- initializers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["xavier_uniform", "kaiming_uniform", "xavier_normal", "kaiming_normal", "zeros", "ones"],
)
@pytest.mark.parametrize("layer", [nn.Linear(60, 40), nn.Conv2d(8, 20, 3)])
def test_initializers_are_recognized(name: str, layer: nn.Module) -> None:
    chainrule.manual_seed(3)
    weight: Any = layer.weight
    how = {"mode": "fan_in", "nonlinearity": "relu"} if "kaiming" in name else {}
    getattr(nn.init, f"{name}_")(weight, **how)
    told = inspect.summary(layer, columns=("initializer",))
    assert told.rows[0].initializer == name
    default = inspect.summary(nn.Linear(60, 40), columns=("initializer",))
    assert default.rows[0].initializer == "default"


def test_a_trained_weight_has_no_initializer() -> None:
    layer = nn.Linear(60, 40)
    with chainrule.no_grad():
        layer.weight.mul_(1.3)
    assert inspect.summary(layer, columns=("initializer",)).rows[0].initializer == ""
