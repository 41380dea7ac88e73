"""Examples 2 to 8 of course 000: networks as modules, images, recurrent networks."""

from __future__ import annotations

import chainrule
from chainrule import charts, inspect, models, nn
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.course import ex02_mlp, ex05_pooling, ex06_classifier, ex07_rnn
from chainrule.atlas.course.ex03_image import picture


@entry(
    "EX02",
    course="000",
    printed="example 2",
    title="A multi-layer perceptron as a module",
    claims=[
        Number("parameters of 784-512-512-10", 669_706, tolerance=0.5, unprinted="counted by hand"),
        Number("shape for two images", (2, 10), tolerance=0.5),
    ],
)
def perceptron() -> Outcome:
    """Three linear layers with ReLU and dropout between them, put together in ``forward``.

    Nearly all parameters are in the first two layers: 784 x 512 and 512 x 512 weights. Dropout has
    none, and does nothing in evaluation.
    """
    net = ex02_mlp.MLP()
    images = chainrule.rand(2, 1, 28, 28)
    return Outcome(
        {
            "parameters of 784-512-512-10": sum(p.numel() for p in net.parameters()),
            "shape for two images": net.eval()(images).shape,
        },
        [inspect.draw(net, images)],
    )


@entry(
    "EX03",
    course="000",
    printed="example 3",
    title="An image as a tensor",
    claims=[
        Number("shape", (1, 3, 188, 257), tolerance=0.5),
        Statement("least and largest value", "between 0 and 1", at_least=0.0, at_most=1.0),
    ],
)
def image() -> Outcome:
    """A picture of 188 by 257 pixels in three colors is a tensor of four dimensions.

    The first counts pictures, the second colors, then come rows and columns: (N, C, H, W), the
    order that convolutions expect.
    """
    x = picture().unsqueeze(0)
    ax = charts.axes_for(None)
    ax.imshow(x[0].permute(1, 2, 0).numpy())
    ax.set(title="1 x 3 x 188 x 257", xlabel="column", ylabel="row")
    return Outcome(
        {"shape": x.shape, "least and largest value": (float(x.min()), float(x.max()))},
        [ax],
        note="The picture of the course is not supplied; painted layers of rock stand in for it.",
    )


@entry(
    "EX05",
    course="000",
    printed="example 5, fig. 24",
    title="Convolution, average pooling and max pooling of one image",
    claims=[
        Number("size of the maps", (188, 257), tolerance=0.5),
        Statement("least of max pooling less average pooling", "the maximum is larger", 0.0),
        Number("parameters of the poolings", 0, tolerance=0.5),
    ],
)
def pooling() -> Outcome:
    """Three ways to look at patches of 3 by 3: a learned sum, the mean, the maximum.

    With a stride of 1 and a padding of 1 all keep the size of the image. Poolings learn nothing and
    treat each color alone.
    """
    maps = ex05_pooling.main()
    axes = charts.grid_of_axes(None, 3, 3)
    for ax, (name, values) in zip(axes, maps.items(), strict=True):
        ax.imshow(values[0, 0].numpy(), cmap=charts.SEQUENTIAL)
        ax.set_title(name, fontsize=10)
        ax.axis("off")
    average, largest = maps["average pooling"], maps["maximum pooling"]
    pools = [nn.AvgPool2d(3), nn.MaxPool2d(3)]
    return Outcome(
        {
            "size of the maps": average.shape[2:],
            "least of max pooling less average pooling": float((largest - average).min()),
            "parameters of the poolings": sum(p.numel() for m in pools for p in m.parameters()),
        },
        [axes],
    )


@entry(
    "EX06",
    course="000",
    printed="example 6",
    title="A convolutional classifier of small color images",
    claims=[
        Number("parameters for ten classes", 62_006, tolerance=0.5, unprinted="counted by hand"),
        Statement("accuracy on new pictures", "it learns to classify", at_least=0.9),
    ],
    full={"epochs": 12},
)
def classifier(epochs: int = 4) -> Outcome:
    """Two convolutions with pooling and three dense layers sort pictures of 32 by 32.

    The network is that of the course. CIFAR's files are large, so stripes that differ in direction
    stand in for its pictures here; they are learned in a few passes.
    """
    accuracy = ex06_classifier.main(epochs=epochs, batch=8)
    images, labels = ex06_classifier.pictures(8)
    axes = charts.grid_of_axes(None, 8, 4, (1.6, 1.8))
    for ax, shown, label in zip(axes, images, labels.tolist(), strict=True):
        low, high = shown.min(), shown.max()
        ax.imshow(((shown - low) / (high - low)).permute(1, 2, 0).numpy())
        ax.set_title(ex06_classifier.CLASSES[label], fontsize=9)
        ax.axis("off")
    count = sum(p.numel() for p in models.CifarNet().parameters())
    return Outcome(
        {"parameters for ten classes": count, "accuracy on new pictures": accuracy},
        [axes],
        note="Painted stripes in four directions stand in for CIFAR-10.",
    )


def learning(kind: type[nn.Module], steps: int, rate: float) -> tuple[float, list[float]]:
    """How much of the first error is left after training a recurrent network, and the errors."""
    net = ex07_rnn.Net(kind)
    x, y = ex07_rnn.series()
    losses = []
    optimizer = chainrule.optim.Adam(net.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] / losses[0], losses


@entry(
    "EX07",
    course="000",
    printed="example 7",
    title="A recurrent network learns a running mean",
    claims=[Statement("error left after training", "it learns a sequence", at_most=0.1)],
    full={"steps": 600},
)
def recurrent(steps: int = 150) -> Outcome:
    """An Elman network reads a series number by number and says the mean of what it has seen.

    For that its state has to carry a sum and a count along. The course announces the program and
    does not print it; this one stands in its place.
    """
    left, losses = learning(nn.RNN, steps, 0.02)
    ax = charts.axes_for(None)
    ax.semilogy(losses, color=charts.COLORS[0])
    ax.set(title="Elman network, running mean", xlabel="step", ylabel="mean squared error")
    return Outcome({"error left after training": left}, [ax])


@entry(
    "EX08",
    course="000",
    printed="example 8",
    title="The same with an LSTM",
    claims=[
        Statement("error left after training", "it learns a sequence", at_most=0.1),
        Number("parameters over those of the RNN", 4.0, tolerance=1e-9),
    ],
    full={"steps": 600},
)
def lstm(steps: int = 120) -> Outcome:
    """Four sums instead of one for every unit: three gates and what they let in.

    So an LSTM has four times the parameters of a plain recurrent layer of its size, and keeps what
    it has seen for longer.
    """
    left, losses = learning(nn.LSTM, steps, 0.02)
    _, plain = learning(nn.RNN, steps, 0.02)
    ax = charts.axes_for(None)
    ax.semilogy(plain, color=charts.COLORS[0], label="RNN")
    ax.semilogy(losses, color=charts.COLORS[1], label="LSTM")
    ax.set(title="Running mean", xlabel="step", ylabel="mean squared error")
    ax.legend()
    sizes = [sum(p.numel() for p in kind(10, 20).parameters()) for kind in (nn.LSTM, nn.RNN)]
    return Outcome(
        {
            "error left after training": left,
            "parameters over those of the RNN": sizes[0] / sizes[1],
        },
        [ax],
    )
