"""What is refused is refused by a sentence, and a warning comes once."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import chainrule
from chainrule import absent
from chainrule.absent import Refused, refused, warn_once


class Queue(Refused):
    reason = "there are no queues"


def test_a_refused_class_can_be_named_but_not_made() -> None:
    assert not isinstance(3, Queue)
    with pytest.raises(RuntimeError, match="^Queue: there are no queues$"):
        Queue(1, name="x")


def test_a_refused_function_names_itself() -> None:
    wait = refused("queues.wait", "there are no queues", ValueError)
    assert wait.__name__ == "wait"
    assert "no queues" in str(wait.__doc__)
    with pytest.raises(ValueError, match="^queues.wait: there are no queues$"):
        wait()


def test_an_absent_name_says_why_if_it_is_known() -> None:
    known = absent.absent("chainrule.x", "y", {"y": "there is no y"})
    assert str(known) == "module 'chainrule.x' has no attribute 'y': there is no y"
    unknown = absent.absent("chainrule.x", "z", {"y": "there is no y"})
    assert str(unknown) == "module 'chainrule.x' has no attribute 'z'"


def test_a_warning_comes_once_and_from_the_line_that_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(absent, "_told", set())

    def library() -> None:
        warn_once("nothing changes", stacklevel=2)

    with pytest.warns(UserWarning, match="nothing changes") as seen:
        library()
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        library()


def late_rooms() -> list[str]:
    """What the roof imports when it is asked for."""
    return [*chainrule._ROOMS, "absent"]


def test_importing_the_package_imports_none_of_pytorchs_paths() -> None:
    program = (
        "import sys, chainrule\n"
        f"print([m for m in {late_rooms()} if 'chainrule.' + m in sys.modules])\n"
        "from chainrule import nn\n"
        "print('chainrule.nn.modules' in sys.modules)\n"
        "print(nn.modules.conv.Conv2d is nn.Conv2d)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.splitlines() == ["[]", "False", "True"], run.stderr


def test_late_names_are_found_and_listed() -> None:
    for name in chainrule._LATE:
        assert getattr(chainrule, name).__name__ == name
        assert name in chainrule.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        chainrule.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        chainrule.nn.nonsense  # noqa: B018
