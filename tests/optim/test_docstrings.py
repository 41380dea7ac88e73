"""What the docstring of an optimizer and of a schedule says: the equation, the defaults, the paper,
an example that runs; and the checker of that sees what is missing."""

import ast
import doctest
import inspect
import re

import pytest

import chainrule
from chainrule import optim
from chainrule.optim import lr_scheduler

OPTIMIZERS = [
    c
    for c in (getattr(optim, name) for name in optim.__all__)
    if isinstance(c, type) and issubclass(c, optim.Optimizer)
    if c not in (optim.Optimizer, optim.Minimizer)  # they have no rule of their own
]
SCHEDULES = [
    c
    for c in (getattr(lr_scheduler, name) for name in lr_scheduler.__all__)
    if isinstance(c, type) and issubclass(c, lr_scheduler.LRScheduler)
    if c is not lr_scheduler.LRScheduler
]
OTHERS = [
    (module, name)
    for module in (optim, lr_scheduler, optim.theory)
    for name in module.__all__
    if callable(getattr(module, name)) and getattr(module, name) not in (*OPTIMIZERS, *SCHEDULES)
]

# --- the checker ----------------------------------------------------------------------------------

EQUATION = re.compile(r"\S <- \S|\S = \S")
PAPER = re.compile(r"[A-Z][a-z]+[^;]{0,120}?, (1[89]|20)\d\d\b")
DEFAULT = re.compile(r"\(default (\([^()]*\)|[^()]*)\)")


def own_text(cls: type) -> str:
    """The docstring that a class has itself, an inherited one does not count."""
    return inspect.cleandoc(vars(cls).get("__doc__") or "")


def arguments(text: str) -> dict[str, str]:
    """What the docstring says of each argument."""
    if "\nArgs:\n" not in text:
        return {}
    block = re.split(r"\n\s*\n", text.split("\nArgs:\n")[1])[0]
    entries = re.split(r"\n(?=    \S)", "\n" + block)
    pairs = [entry.strip().split(":", 1) for entry in entries if ":" in entry]
    return {name: " ".join(rest.split()) for name, rest in pairs}


def missing_arguments(cls: type, text: str) -> list[str]:
    """The arguments that are not described, or whose default is not the one of the signature."""
    if "__init__" not in vars(cls):
        owner = next(c for c in cls.__mro__ if "__init__" in vars(c))
        return [] if f"see :class:`{owner.__name__}`" in text else ["arguments"]
    said = arguments(text)
    found = []
    for name, p in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        if name not in said and name != "implementation":
            found.append(f"argument {name}")
        elif p.default not in (p.empty, None) and not isinstance(p.default, bool):
            value = DEFAULT.search(said[name])
            if value is None or ast.literal_eval(value[1]) != p.default:
                found.append(f"default of {name}")
    return found


def missing_example(cls: type, text: str) -> list[str]:
    """Whether there is no example of this class, or one that does not give what it says."""
    test = doctest.DocTestParser().get_doctest(text, {}, cls.__name__, None, None)
    if f"{cls.__name__}(" not in "".join(e.source for e in test.examples):
        return ["example"]
    if not any(e.want for e in test.examples):
        return ["result of the example"]
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    results = doctest.DocTestRunner(optionflags=flags).run(test, out=lambda text: None)
    return ["example that runs"] if results.failed else []


def missing(cls: type, *, schedule: bool = False) -> list[str]:
    """What the docstring of an optimizer or schedule does not say."""
    text = own_text(cls)
    if not text:
        return ["docstring"]
    story = text.split("\nArgs:\n")[0].split(">>>")[0]
    found = [] if EQUATION.search(story) else ["equation"]
    if not schedule:
        found += [] if PAPER.search(" ".join(story.split())) else ["paper"]
        found += missing_arguments(cls, text)
    return found + missing_example(cls, text)


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", OPTIMIZERS, ids=lambda c: c.__name__)
def test_an_optimizer_has_equation_defaults_paper_and_example(cls):
    chainrule.manual_seed(0)
    assert missing(cls) == []


@pytest.mark.parametrize("cls", SCHEDULES, ids=lambda c: c.__name__)
def test_a_schedule_has_equation_and_example(cls):
    assert missing(cls, schedule=True) == []


@pytest.mark.parametrize(("module", "name"), OTHERS, ids=lambda x: getattr(x, "__name__", x))
def test_everything_else_has_a_docstring(module, name):
    found = getattr(module, name)
    assert (vars(found).get("__doc__") if isinstance(found, type) else found.__doc__ or "").strip()


def test_all_are_looked_at():
    assert len(OPTIMIZERS) >= 32
    assert len(SCHEDULES) >= 18
    assert optim.Adam in OPTIMIZERS
    assert lr_scheduler.OneCycleLR in SCHEDULES


# --- the checker sees what is missing -------------------------------------------------------------


class Whole(optim.SGD):
    """Descent: p <- p - lr g. Cauchy, 1847.

    Args:
        params: the parameters.
        lr: the rate (default 0.5). It
            may be large.
        betas: two numbers (default (0.9, 0.99)).
        kind: a word (default "plain").

    >>> "Whole(" + "w)"
    'Whole(w)'
    """

    def __init__(self, params, lr=0.5, betas=(0.9, 0.99), kind="plain", **implementation):
        super().__init__(params, lr)


class Heir(Whole):
    """Descent: p <- p - lr g. Cauchy, 1847. Arguments: see :class:`Whole`.

    >>> "Heir(" + "w)"
    'Heir(w)'
    """


def changed(old: str, new: str, base: type = Whole) -> type:
    """The class with another docstring."""
    text = base.__doc__ or ""
    assert old in text
    return type(base.__name__, (base,), {**vars(base), "__doc__": text.replace(old, new)})


def test_a_whole_docstring_lacks_nothing():
    assert missing(Whole) == []
    assert missing(Heir) == []
    assert arguments(own_text(Whole))["lr"] == "the rate (default 0.5). It may be large."


@pytest.mark.parametrize(
    ("old", "new", "lack"),
    [
        ("p <- p - lr g", "downhill", "equation"),
        (" Cauchy, 1847.", "", "paper"),
        ("        params: the parameters.\n", "", "argument params"),
        (" (default 0.5)", "", "default of lr"),
        ("(default 0.5)", "(default 0.1)", "default of lr"),
        ("(0.9, 0.99)", "(0.9, 0.999)", "default of betas"),
        ('"plain"', '"fancy"', "default of kind"),
        (">>> ", "", "example"),
        ("'Whole(w)'", "", "result of the example"),
        ("'Whole(w)'", "'Whole(v)'", "example that runs"),
    ],
)
def test_the_checker_refuses(old, new, lack):
    assert missing(changed(old, new)) == [lack]


def test_the_checker_refuses_an_inherited_docstring():
    class Silent(Whole):
        pass

    assert missing(Silent) == ["docstring"]


def test_the_checker_refuses_arguments_that_are_nowhere():
    assert missing(changed(" Arguments: see :class:`Whole`.", "", Heir)) == ["arguments"]


def test_a_schedule_needs_no_paper():
    assert missing(changed(" Cauchy, 1847.", ""), schedule=True) == []
    assert missing(changed("p <- p - lr g", "downhill"), schedule=True) == ["equation"]
