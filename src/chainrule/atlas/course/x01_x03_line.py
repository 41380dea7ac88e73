"""X01-X03: SGD, momentum and Nesterov's momentum of document 001 on the line y = 3 x + 2 + noise.

The course prints one result of 1000 iterations for each and says neither where the 30 points x lie
nor how many an iteration sees. Here an iteration sees one of them, drawn anew (the parameters are
initialized once: erratum 63), for several ranges of x and many data sets, so that the printed
numbers can be measured in standard deviations of what may come out.
"""

from __future__ import annotations

import chainrule
from chainrule import Generator, Tensor, optim, problems
from chainrule.atlas.course.course_table import show, spread

Pair = tuple[float, float]

RATE = 0.005
METHODS = {  # momentum, Nesterov, the printed (offset, slope)
    "X01 SGD": (0.0, False, (1.9882, 2.9975)),
    "X02 momentum": (0.6, False, (1.9837, 2.9933)),
    "X03 Nesterov": (0.8, True, (1.9738, 2.9914)),
}
RANGES = ((-1.0, 1.0), (-3.0, 3.0), (-10.0, 10.0), (0.0, 1.0), (0.0, 10.0))


def data(low: float, high: float, runs: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """30 points for each run: x and y of shape (runs, 30)."""
    p = problems.line(30 * runs, low, high, generator=generator, dtype=chainrule.float64)
    return p.inputs.reshape(runs, 30), p.targets.reshape(runs, 30)


def descend(x: Tensor, y: Tensor, index: Tensor, momentum: float, nesterov: bool) -> Tensor:
    """(offset, slope) of shape (2, runs) after one step for every row of ``index``: (steps, runs).

    The runs share the optimizer, which treats every entry of its parameter alike.
    """
    start = chainrule.tensor([[10.0], [5.0]], dtype=x.dtype)
    theta = start.repeat(1, x.shape[0]).requires_grad_()
    optimizer = optim.SGD([theta], lr=RATE, momentum=momentum, nesterov=nesterov)
    for i in index:
        x_i, y_i = (t.gather(1, i.unsqueeze(1)).squeeze(1) for t in (x, y))
        optimizer.zero_grad()
        ((y_i - theta[0] - theta[1] * x_i) ** 2).sum().backward()
        optimizer.step()
    result = theta.detach()
    if nesterov:  # SGD keeps the point it looks ahead to; the course prints the one behind it
        result = result + RATE * momentum * optimizer.state[theta]["momentum_buffer"]
    return result


def main(
    runs: int = 1000, steps: int = 1000, ranges: tuple[Pair, ...] = RANGES
) -> dict[tuple[str, Pair], tuple[Pair, Pair, Pair]]:
    """{(method, range): (means, standard deviations, distances of the printed numbers)}"""
    results, rows = {}, []
    for low, high in ranges:
        generator = Generator().manual_seed(0)
        x, y = data(low, high, runs, generator)
        index = chainrule.randint(0, 30, (steps, runs), generator=generator)
        for name, (momentum, nesterov, printed) in METHODS.items():
            theta = descend(x, y, index, momentum, nesterov)
            (b, b_std), (w, w_std) = (spread(t.tolist()) for t in theta)
            far = ((printed[0] - b) / b_std, (printed[1] - w) / w_std)
            results[name, (low, high)] = (b, w), (b_std, w_std), far
            verdict = "yes" if max(map(abs, far)) < 2 else "no"
            rows.append(
                (
                    name,
                    f"[{low:g}, {high:g}]",
                    f"{printed[0]:.4f} {printed[1]:.4f}",
                    f"{b:.4f} +- {b_std:.4f}",
                    f"{w:.4f} +- {w_std:.4f}",
                    f"{far[0]:+.1f} {far[1]:+.1f}",
                    verdict,
                )
            )
    show(
        f"{steps} iterations of batch 1 from (10, 5), rate {RATE}, {runs} data sets",
        ("method", "x in", "printed", "offset", "slope", "s.d. off", "within 2 s.d."),
        rows,
    )
    return results


if __name__ == "__main__":
    main()
