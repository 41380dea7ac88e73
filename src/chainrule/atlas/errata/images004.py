"""Convolutions, pictures and activations of the notes 004, as printed and as it is right."""

from __future__ import annotations

import math
from pathlib import Path

import chainrule
from chainrule import func, nn
from chainrule import data as datasets
from chainrule.atlas import Forms, Number, Outcome, Refuted, Statement, Unchecked, Wrong, entry
from chainrule.nn import functional as F

DOUBLE = chainrule.float64
# Counted in the files of labels.
TRAIN = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)


@entry(
    "ERR111",
    course="004",
    printed="eq 6.21",
    title="Which weight links an input pixel to an output pixel",
    claims=[Wrong("ds_ij/dx_ab", "w_(i-a, j-b)", "w_(a-i, b-j)", tolerance=1e-9)],
)
def link_of_pixels() -> Outcome:
    """s_ij = sum w_kl x_(i+k, j+l): pixel (a, b) is read with the weight (a - i, b - j).

    With the signs changed the indices are negative where the kernel is and the slope would be that
    of pixels which the kernel never reads. All entries of the Jacobian are compared.
    """
    w = chainrule.randn(3, 3, dtype=DOUBLE)
    x = chainrule.randn(5, 5, dtype=DOUBLE)
    truth = func.jacrev(lambda x: F.conv2d(x.reshape(1, 1, 5, 5), w.reshape(1, 1, 3, 3))[0, 0])(x)

    def built(sign: int) -> chainrule.Tensor:
        found = chainrule.zeros(3, 3, 5, 5, dtype=DOUBLE)
        for i in range(3):
            for j in range(3):
                for a in range(5):
                    for b in range(5):
                        k, m = sign * (a - i), sign * (b - j)
                        if 0 <= k < 3 and 0 <= m < 3:
                            found[i, j, a, b] = w[k, m]
        return found

    return Outcome({"ds_ij/dx_ab": Forms(built(-1), built(1), truth)})


@entry(
    "ERR112",
    course="004",
    printed="eq 6.19",
    title="Which places of a kernel read a pixel",
    claims=[
        Wrong("rows i that cannot read row a = 3", "i + k > a for all k means i < a", "i > a", 0.5)
    ],
)
def reading_places() -> Outcome:
    """A kernel at row i reads the rows i, i + 1, ...: if all of them are below row a, i is, too.

    For a = 3, a kernel of 2 and rows 0 to 6, the places that begin behind row 3 are 4, 5 and 6.
    """
    a, k, rows = 3, 2, range(7)
    behind = [i for i in rows if all(i + j > a for j in range(k))]
    forms = Forms([i for i in rows if i < a], [i for i in rows if i > a], behind)
    return Outcome({"rows i that cannot read row a = 3": forms})


@entry(
    "ERR113",
    course="004",
    printed="eq 6.22",
    title="The size of a feature map is rounded down",
    claims=[Wrong("A = 6, R = 3, S = 2, P = 0", "(A - R + 2P) / S + 1", "floor(...) + 1", 1e-9)],
)
def rounded_size() -> Outcome:
    """A kernel has whole places only: half a step at the border is left out.

    Six pixels, a kernel of three and a stride of two would give 2.5 places; there are 2.
    """
    size = nn.Conv1d(1, 1, 3, stride=2)(chainrule.zeros(1, 1, 6)).shape[-1]
    exact = (6 - 3) / 2 + 1
    forms = Forms(exact, math.floor((6 - 3) / 2) + 1, size)
    return Outcome({"A = 6, R = 3, S = 2, P = 0": forms})


def counted(data: Path | None) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Images of each class in both parts: from the files, or as they were counted in them."""
    if data is None:
        return TRAIN, TEST, "Counts of the label files; --full --data DIR counts them anew."
    parts = []
    for train in (True, False):
        labels = datasets.MNIST(data, train=train).targets
        parts.append(tuple(int((labels == k).sum()) for k in range(10)))
    return parts[0], parts[1], "Counted in the files."


@entry(
    "ERR114",
    course="004",
    printed="section 6.9",
    title="How many training images MNIST has",
    claims=[Wrong("training images", "50,000", "60,000 (as D.1)", tolerance=0.5)],
    data=("mnist",),
)
def mnist_size(data: Path | None = None) -> Outcome:
    """MNIST has 60,000 images to train with and 10,000 to test.

    Some split 10,000 off for validation, which leaves 50,000; the set itself has 60,000.
    """
    train, _, note = counted(data)
    return Outcome({"training images": Forms(50_000, 60_000, sum(train))}, note=note)


@entry(
    "ERR115",
    course="004",
    printed="appendix D.1",
    title="The classes of MNIST are not even",
    claims=[
        Refuted("least class over largest class", "even: 1", (1.0, 1.0), "uneven", (0.75, 0.85)),
        Number(
            "least and largest training class",
            (5421, 6742),
            tolerance=0.5,
            unprinted="counted in the files of MNIST",
        ),
        Number(
            "least and largest test class",
            (892, 1135),
            tolerance=0.5,
            unprinted="counted in the files of MNIST",
        ),
    ],
    data=("mnist",),
)
def mnist_classes(data: Path | None = None) -> Outcome:
    """There are 5421 fives and 6742 ones to train with; a guess of "1" is right in 11 % of cases.

    The notes say 6,000 and 1,000 of each, and call the images black and white; they have 256 levels
    of gray.
    """
    train, test, note = counted(data)
    return Outcome(
        {
            "least class over largest class": min(train) / max(train),
            "least and largest training class": (min(train), max(train)),
            "least and largest test class": (min(test), max(test)),
        },
        note=note,
    )


@entry(
    "ERR136",
    course="004",
    printed="A.7",
    title="The slope of ReLU at 0",
    claims=[
        Wrong("slope of ReLU at 0, as computed", "1", "0", tolerance=1e-9),
        Statement("slopes from the left and the right", "0 and 1: both are one-sided", 0.0, 1.0),
        Wrong("slope of SELU at 0, as computed", "1.0507", "1.7581", tolerance=1e-4),
    ],
)
def slope_at_zero() -> Outcome:
    """At a kink there is no slope; programs have to take one of the one-sided ones.

    PyTorch, JAX and this library take 0 for ReLU, and for SELU the slope of the left side, 1.7581.
    A convention, which changes nothing in practice.
    """
    zero = chainrule.tensor(0.0, dtype=DOUBLE)
    near = [float(func.grad(F.relu)(zero + e)) for e in (-1e-9, 1e-9)]
    return Outcome(
        {
            "slope of ReLU at 0, as computed": Forms(1.0, 0.0, float(func.grad(F.relu)(zero))),
            "slopes from the left and the right": near,
            "slope of SELU at 0, as computed": Forms(
                1.0507, 1.7581, float(func.grad(lambda x: F.selu(x))(zero))
            ),
        }
    )


@entry(
    "ERR137",
    course="004",
    printed="A.16",
    title="The slope of the sigmoid, written with e^x",
    claims=[Wrong("slope at x = 1", "e^x / (1 + (e^x)^2)", "e^x / (1 + e^x)^2", tolerance=1e-9)],
)
def sigmoid_slope() -> Outcome:
    """The square is of the whole denominator: 0.1966 at 1, and not 0.3240."""
    one = chainrule.tensor(1.0, dtype=DOUBLE)
    e = math.e
    forms = Forms(e / (1 + e * e), e / (1 + e) ** 2, float(func.grad(chainrule.sigmoid)(one)))
    return Outcome({"slope at x = 1": forms})


@entry(
    "ERR138",
    course="004",
    printed="A.12",
    title="Where the sums of a second-order unit end",
    claims=[Wrong("terms of a unit with 3 inputs, 20 samples", "up to N", "number of inputs", 0.5)],
)
def second_order_terms() -> Outcome:
    """The unit sums over pairs of its inputs; N is the number of samples elsewhere.

    With the constant input 1 in front, three inputs have 4 x 4 terms, whatever the data.
    """
    layer = nn.SecondOrder(3, 1)
    count = sum(p.numel() for p in layer.parameters())
    return Outcome(
        {"terms of a unit with 3 inputs, 20 samples": Forms((1 + 20) ** 2, (1 + 3) ** 2, count)}
    )


@entry(
    "ERR142",
    course="004",
    printed="table D.1",
    title="Who reached 0.21 % on MNIST",
    claims=[
        Unchecked(
            "source of the 0.21 %",
            "Wang et al. 2013 (action recognition)",
            "a reference is not computed: it is Wan et al. 2013, DropConnect",
        )
    ],
)
def reference() -> Outcome:
    """The best error of the table belongs to a paper on DropConnect, by Wan et al.

    The paper that is cited is on actions in videos. No number of ours decides between the two.
    """
    return Outcome({})


@entry(
    "ERR143",
    course="004",
    printed="section 2",
    title="How many glia a brain has",
    claims=[
        Unchecked(
            "glia per neuron",
            "50 times, and 10 times, as many",
            "two places of the text contradict each other; nothing to compute",
        )
    ],
)
def glia() -> Outcome:
    """Two sentences give two numbers for the cells beside the neurons.

    What the models of the notes are made of are neurons alone, so nothing follows from it here.
    """
    return Outcome({})
