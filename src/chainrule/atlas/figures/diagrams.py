"""Networks as circles and lines, and the graph that a computation leaves behind."""

from __future__ import annotations

import itertools
from collections import Counter

import chainrule
from chainrule import Tensor, inspect, models, nn
from chainrule.atlas import Number, Outcome, Statement, entry

LAYERS = (3, 4, 4, 4, 1)


def layer_of(unit: str) -> str:
    """The layer of a unit of a drawing: "x" of x2, "h1" of h1.3, "h" of h2."""
    return unit.split(".")[0] if "." in unit else unit[0]


def drawn_sizes(drawing: inspect.Drawing) -> list[int]:
    """How many units each layer of a drawing has, from left to right."""
    where: dict[str, list[float]] = {}
    for box in drawing.boxes:
        where.setdefault(layer_of(box.name), []).append(box.x)
    return [len(places) for places in sorted(where.values(), key=min)]


def missing_links(drawing: inspect.Drawing) -> int:
    """Pairs of units of adjacent layers without a line, and lines between other layers."""
    layers = list(dict.fromkeys(layer_of(box.name) for box in drawing.boxes))
    units = Counter(layer_of(box.name) for box in drawing.boxes)
    lines = Counter((layer_of(e.source), layer_of(e.target)) for e in drawing.edges)
    wanted = {(a, b): units[a] * units[b] for a, b in itertools.pairwise(layers)}
    pairs = {*wanted, *lines}
    return sum(abs(wanted.get(pair, 0) - lines[pair]) for pair in pairs)


def weight_error(net: nn.Sequential) -> float:
    """The largest difference between w_ij and the change of the sum of unit i with unit j."""
    layer = net[0]
    slopes = chainrule.func.jacrev(layer)(chainrule.randn(layer.in_features))
    return float((slopes - layer.weight).abs().max())


@entry(
    "V07",
    course="000",
    printed="fig. 1, 10, 11, 25; 004 fig. 4.1-4.10; 002",
    title="Networks as circles and lines",
    claims=[
        Number("000 fig. 1: hidden layers and outputs, drawn", (3, 1), tolerance=0.5),
        Number("000 fig. 10: units from layer to layer, drawn", (2, 2, 1), tolerance=0.5),
        Statement("links that are missing or too many", "each node to all of the next", at_most=0),
        Statement("difference of w_ij and the link from j to i", "004 fig. 4.1", at_most=1e-6),
        Statement(
            "000 fig. 25: convolutions and poolings behind a dense layer",
            "dense layers come at the end of the stack",
            at_most=0,
        ),
    ],
)
def network_diagrams() -> Outcome:
    """Circles are units, lines are weights: from each unit of a layer to each unit of the next.

    The drawings are made from the networks themselves. A line from unit j to unit i is the weight
    w_ij: by so much the sum of unit i changes with the answer of unit j. Wide lines are large
    weights, blue positive and orange negative. Larger networks are drawn as modules, with the
    sizes of the tensors between them, such as the convolutional one at the end.
    """
    deep = models.MLP(LAYERS[0], LAYERS[1:-1], LAYERS[-1], "tanh")
    first = inspect.draw(deep, level="units", weights=True)
    second = inspect.draw(models.xor_from_ands(), level="units", weights=True)
    convolutional = models.CifarNet()
    third = inspect.draw(convolutional, chainrule.zeros(1, 3, 32, 32))
    kinds = [type(m).__name__ for m in called(convolutional)]
    behind = kinds[kinds.index("Linear") :]
    sizes = drawn_sizes(first)
    return Outcome(
        {
            "000 fig. 1: hidden layers and outputs, drawn": (len(sizes) - 2, sizes[-1]),
            "000 fig. 10: units from layer to layer, drawn": drawn_sizes(second),
            "links that are missing or too many": missing_links(first) + missing_links(second),
            "difference of w_ij and the link from j to i": weight_error(deep),
            "000 fig. 25: convolutions and poolings behind a dense layer": behind.count("Conv2d")
            + behind.count("MaxPool2d"),
        },
        [first, second, third],
    )


def called(net: nn.Module) -> list[nn.Module]:
    """The modules without parts in the order in which one image passes them."""
    seen: list[nn.Module] = []
    leaves = [m for m in net.modules() if not list(m.children())]
    handles = [m.register_forward_hook(lambda m, *_: seen.append(m)) for m in leaves]
    net(chainrule.zeros(1, 3, 32, 32))
    for handle in handles:
        handle.remove()
    return seen


# --- V09 ------------------------------------------------------------------------------------------


def closed_form(w: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The derivative of the mean squared error of a line by its weights, as a row."""
    return 2 / len(x) * (x @ w.T + b - y).T @ x


def backward_edges(graph: inspect.ComputationGraph) -> int:
    """Links that lead to a box which has, by other links, to come before: 0 without a cycle."""
    left = Counter({box.name: 0 for box in graph.boxes})
    links = [(e.source, e.target) for e in graph.edges]
    left.update(target for _, target in links)
    free = [name for name, count in left.items() if not count]
    while free:
        name = free.pop()
        for source, target in links:
            if source == name:
                left[target] -= 1
                if not left[target]:
                    free.append(target)
    return sum(count > 0 for count in left.values())


@entry(
    "V09",
    course="000",
    printed="fig. 42-43; 001, computational graph",
    title="The graph behind a tensor",
    claims=[
        Number("leaves of g(w x + b): w and b", 2, tolerance=0.5),
        Statement("boxes on a cycle", "directed and acyclic", at_most=0),
        Number("001: size of dL/dw for 8 inputs", (1, 8), tolerance=0.5),
        Statement("001: distance of dL/dw from the closed form", "chain rule", at_most=1e-6),
    ],
)
def computational_graph() -> Outcome:
    """Every tensor that was computed remembers the operation that made it, and this one its inputs.

    Followed back, that is a graph: leaves are the parameters (blue), boxes are operations, orange
    is what an operation kept because its derivative needs it. Backward goes through the boxes in
    the opposite direction and multiplies the derivative of each, which is the chain rule. Above is
    one neuron, g(w x + b); below the loss of a linear regression of 64 samples with 8 inputs.
    """
    w, b = (chainrule.randn(1, requires_grad=True) for _ in range(2))
    neuron = chainrule.sigmoid(w * chainrule.randn(1) + b)
    one = inspect.make_dot(neuron, {"w": w, "b": b}, show_saved=True)
    net = nn.Linear(8, 1, dtype=chainrule.float64)
    x, y = (chainrule.randn(64, n, dtype=chainrule.float64) for n in (8, 1))
    loss = ((net(x) - y) ** 2).mean()
    other = inspect.make_dot(loss, dict(net.named_parameters()), show_saved=True)
    loss.backward()
    slope = net.weight.grad
    if slope is None:
        raise RuntimeError("computational_graph: backward left no gradient")
    expected = closed_form(net.weight.detach(), net.bias.detach(), x, y)
    return Outcome(
        {
            "leaves of g(w x + b): w and b": sum(box.kind == "parameter" for box in one.boxes),
            "boxes on a cycle": backward_edges(one) + backward_edges(other),
            "001: size of dL/dw for 8 inputs": slope.shape,
            "001: distance of dL/dw from the closed form": float((slope - expected).norm()),
        },
        [one, other],
    )
