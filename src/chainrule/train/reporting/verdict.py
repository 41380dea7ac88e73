"""What a run comes to, in one sentence, and what to try next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from chainrule.inspect.results.predictions import Predictions
from chainrule.inspect.results.thresholds import PrecisionRecall
from chainrule.printing import readable
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.seen import seen_of

__all__ = ["LINEAR", "MEASURES", "Measure", "Verdict", "measure", "verdict"]

LINEAR = "linear model"
FEW = 200  # held-out rows, below which a score is worth another look


@dataclass(frozen=True)
class Measure:
    """What a score is called, what it means, how it is written, and whether less of it is better.

    ``says`` is what a network with a value does, for a sentence.
    """

    name: str
    meaning: str
    style: str = ""
    lower: bool = False
    says: str = ""
    ranked: bool = True  # whether one value is better than another, whatever it should be

    def __call__(self, value: float) -> str:
        """A value as text."""
        return format(value, self.style) if self.style else readable(value)

    def plain(self, value: float) -> str:
        """A value for a column of numbers in a terminal."""
        return f"{value:.4f}" if self.style else readable(value)

    def claim(self, value: float) -> str:
        """A value as what the network does."""
        return (self.says or f"has {self.name} {{}} on").format(self(value))


MEASURES = {
    "accuracy": Measure("accuracy", "share that is right", ".1%", says="is right on {} of"),
    "f1": Measure("F1", "precision and recall in one, mean over the classes", ".3f"),
    "nll": Measure("log loss", "of the probabilities; lower is better", ".3f", lower=True),
    "roc_auc": Measure("ROC AUC", "how often a row of the class is ranked above another", ".3f"),
    "r2": Measure("R2", "explained share of the variance: 1 is perfect, 0 the mean", ".3f"),
    "rmse": Measure("RMSE", "root mean square error; lower is better", lower=True),
    "mae": Measure("mean error", "mean absolute error; lower is better", lower=True),
    "label_f1": Measure("F1 of labels", "precision and recall in one, over all labels", ".3f"),
    "hamming_loss": Measure("wrong labels", "share of labels; lower is better", ".1%", lower=True),
    "subset_accuracy": Measure("all labels right", "share of rows", ".1%"),
    "d2": Measure("D2", "explained share of the Poisson deviance: 1 is perfect, 0 the mean", ".3f"),
    "deviance": Measure("deviance", "Poisson deviance; lower is better", lower=True),
    "pinball": Measure("pinball loss", "error of the quantiles; lower is better", lower=True),
    "coverage": Measure(
        "coverage", "share of rows between the outer quantiles", ".1%", ranked=False
    ),
    "rank_mae": Measure(
        "mean rank error", "mean distance in ranks; lower is better", ".3f", lower=True
    ),
    "kappa": Measure("kappa", "agreement beyond chance, by squared distances", ".3f"),
}
MAIN = {
    "classification": "accuracy",
    "regression": "r2",
    "multilabel": "label_f1",
    "count": "d2",
    "quantile": "pinball",
    "ordinal": "rank_mae",
}


def measure(name: str) -> Measure:
    """What is known of a score, also of one of several targets; of others their own names.

    >>> measure("rmse price").name
    'RMSE of price'
    """
    kind, _, target = name.partition(" ")
    if name in MEASURES or not target or kind not in MEASURES:
        return MEASURES.get(name) or Measure(name, "")
    return replace(MEASURES[kind], name=f"{MEASURES[kind].name} of {target}")


@dataclass
class Verdict:
    """``level`` is "better", "even", "worse" (than a linear model) or "nothing" (was learned)."""

    level: str
    sentence: str
    advice: list[str] = field(default_factory=list)


def verdict(network: FittedNetwork) -> Verdict:
    """How good the network is beside what it has to beat, and what to try."""
    about = network.about
    main = MAIN.get(about["task"], "")
    if about["settings"].get("class_weight") and "f1" in about["scores"]:
        main = "f1"  # who weighs rare classes up does not ask for the most right answers
    if main not in about["scores"]:
        main = next(iter(about["scores"]))
    own, shown = about["scores"][main], measure(main)
    sign = -1 if shown.lower else 1
    others = {n: s[main] for n, s in about["baselines"].items() if main in s}
    linear = others.pop(LINEAR, None)
    guess = max(others, key=lambda n: sign * others[n], default="")
    margin = _margin(about, main)
    learned = not guess or sign * (own - others[guess]) > margin
    if not learned and _ranks(about):
        level, sentence = _ranked(about, shown, own, guess, others[guess])
        return Verdict(level, sentence + ".", _advice_to_rank(network))
    if not learned:
        level, sentence = "nothing", _nothing(about, shown, own, guess, others[guess])
    else:
        lead = math.inf if linear is None else sign * (own - linear)
        level = "even" if abs(lead) <= margin else "better" if lead > 0 else "worse"
        known = {guess: others[guess]} if guess else {}
        sentence = _compared(level, about, shown, own, linear, known)
    return Verdict(level, sentence + _unit(about) + ".", _advice(network, level))


def _margin(about: dict[str, Any], main: str) -> float:
    """What chance makes of a score: a difference below it says nothing."""
    rows, own = max(1, about["split"]["test"]), about["scores"][main]
    if main in about.get("intervals", {}):
        low, high = about["intervals"][main]
        return (high - low) / 4
    if main == "accuracy":
        share = (own * rows + 1) / (rows + 2)  # all of a few right is not always right
        return max(0.002, 1.4 * math.sqrt(max(0.0, share * (1 - share)) / rows))
    if main == "r2":
        return max(0.005, 2 * math.sqrt(max(0.0, own)) * (1 - min(1.0, own)) / math.sqrt(rows))
    return 0.01 * abs(own)


def _unit(about: dict[str, Any]) -> str:
    """Of numbers how far off they are, in their own unit."""
    if about["task"] != "regression" or "mae" not in about["scores"]:
        return ""
    off = readable(about["scores"]["mae"])
    return f"; predictions of the network are off by {off} in the mean"


def _what(about: dict[str, Any]) -> str:
    return "images" if about.get("images") else "rows"


def _held_out(about: dict[str, Any]) -> str:
    return f"{about['split']['test']:,} held-out {_what(about)}"


def _compared(
    level: str,
    about: dict[str, Any],
    shown: Measure,
    own: float,
    linear: float | None,
    guess: dict[str, float],
) -> str:
    rows = _held_out(about)
    guessed = "".join(f"always the {name} {shown(value)}" for name, value in guess.items())
    if linear is None:
        return f"The network {shown.claim(own)} {rows}" + (f" ({guessed})" if guess else "")
    if level == "worse":
        more = f" ({guessed})" if guess else ""
        return f"A linear model wins: {shown(linear)} against {shown(own)} {_of(shown, rows)}{more}"
    word = "better than" if level == "better" else "about as good as"
    more = f"; {guessed}" if guess else ""
    return f"The network {shown.claim(own)} {rows}, {word} a linear model ({shown(linear)}{more})"


def _of(shown: Measure, rows: str) -> str:
    return f"of {rows} right" if shown.name == "accuracy" else f"in {shown.name} on {rows}"


def _nothing(about: dict[str, Any], shown: Measure, own: float, guess: str, value: float) -> str:
    return (
        f"Little was learned: {shown.name} {shown(own)} on {_held_out(about)} is no better than "
        f"always the {guess} ({shown(value)})"
    )


def _ranks(about: dict[str, Any]) -> bool:
    """Whether the rows of a class come before the others, whatever the threshold makes of it."""
    return bool(about["scores"].get("roc_auc", 0.0) >= 0.7)


def _ranked(
    about: dict[str, Any], shown: Measure, own: float, guess: str, value: float
) -> tuple[str, str]:
    """The level and the sentence of a network that ranks well behind a bad threshold."""
    area = about["scores"]["roc_auc"]
    linear = about["baselines"].get(LINEAR, {}).get("roc_auc")
    level, beside = "better", ""
    if linear is not None:
        lead, margin = area - linear, _margin(about, "roc_auc")
        level = "even" if abs(lead) <= margin else "better" if lead > 0 else "worse"
        beside = f", a linear model {linear:.2f}"
    return level, (
        f"The network ranks rows well (ROC AUC {area:.2f} on {_held_out(about)}{beside}), but at a "
        f"threshold of 50% it is right no more often than always the {guess} ({shown(own)} "
        f"against {shown(value)}): choose another threshold"
    )


# --- what to try ----------------------------------------------------------------------------------


def _advice_to_rank(network: FittedNetwork) -> list[str]:
    """What to do with probabilities that are right in their order."""
    best = _best_threshold(network)
    found = [f"F1 is best with a threshold of {best:.0%} (see Thresholds)."] if best else []
    if not network.about["settings"].get("class_weight"):
        found.append(
            "`--class-weight balanced` moves the threshold of the classes that are predicted; the "
            "probabilities are then no shares any more."
        )
    return found + _on_few_rows(network.about)


def _best_threshold(network: FittedNetwork) -> float | None:
    """The threshold of the best F1 of the second of two classes, where rows were held out."""
    if "output" not in network.held_out or len(network.about["classes"]) != 2:
        return None
    seen = seen_of(network)
    found = Predictions("classification", seen.said, seen.true, seen.names)
    return next(iter(PrecisionRecall._of(found).best.values()))


def _advice(network: FittedNetwork, level: str) -> list[str]:
    about, found = network.about, []
    overfits, unfinished = _overfits(network), _unfinished(network)
    is_linear = about["settings"].get("hidden") == []
    if level == "nothing" and not about.get("images"):
        found.append(
            "Do the columns say anything about the target? Look at the importances and at the "
            "worst cases; a column that does may be missing."
        )
    if level == "nothing" and about.get("images"):
        found.append(
            "Can the classes be told apart in what the network sees? Look at the worst cases; "
            "`--size` keeps more pixels."
        )
    if level == "worse" and not about.get("images") and not is_linear:
        found.append(
            'Use the linear model: `--hidden ""` trains one, with the same files and commands.'
        )
    if unfinished:
        found.append(
            f"The loss still fell at the last epoch: train longer (`--epochs "
            f"{2 * about['settings']['epochs']}`)."
        )
    if overfits:
        what = _what(about)
        found.append(
            f"It knows the training {what} better than others ({overfits}): more {what} help most, "
            "then `--weight-decay 0.01`, `--dropout 0.2`, or fewer units (`--hidden 16`)."
        )
    elif level in ("worse", "nothing") and not unfinished and is_linear:
        found.append("Try another rate (`--lr 0.01`), or leave `--hidden` out for a network.")
    elif level in ("worse", "nothing") and not unfinished:
        found.append("Try a smaller rate (`--lr 0.0003`) or other widths (`--hidden 128,128`).")
    if level == "even" and not about.get("images") and not is_linear:
        found.append(
            'A linear model is simpler and as good here: `--hidden ""` trains one. The network '
            "may pull ahead with more rows."
        )
    return found + _on_few_rows(about)


def _on_few_rows(about: dict[str, Any]) -> list[str]:
    if about["split"]["test"] >= FEW:
        return []
    word = "" if about.get("images") else "; `chainrule cv` scores all rows in turn"
    return [
        f"The scores rest on {about['split']['test']} {_what(about)}, and another split would "
        f"change them{word}."
    ]


def _overfits(network: FittedNetwork) -> str:
    """Scores of training and validation that lie far apart at the best epoch, in words."""
    for name, most in (("accuracy", 0.08), ("r2", 0.15)):
        rows = network.history.rows
        if not rows or name not in rows[0] or f"val_{name}" not in rows[0]:
            continue
        best = min(len(rows), network.about["best_epoch"]) - 1
        trained, held = rows[best][name], rows[best][f"val_{name}"]
        if trained - held > most:
            shown = measure(name)
            return f"{shown.name} {shown(trained)} against {shown(held)}"
    return ""


def _unfinished(network: FittedNetwork) -> bool:
    epochs = network.about["settings"].get("epochs") or 0  # where they are chosen, they suffice
    return len(network.history) >= epochs > 1 and network.about["best_epoch"] == epochs
