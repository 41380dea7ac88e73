"""How processes learn that one of them is gone, and end.

Each process holds a line to process 0, and nothing is said on it while all is well. A line that
breaks means that a process was killed; a process that fails or leaves says so before. Process 0
tells all others. Whoever waits for a message gets an error; a process that does not end by itself
in some seconds (because it computes, or waits for a GPU) is ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import threading
from collections.abc import Mapping
from typing import Any

from chainrule.backend.processes.mail import Mailbox
from chainrule.backend.processes.meeting import Meeting
from chainrule.backend.processes.messages import SILENCE, read_message, send_message

__all__ = ["LAUNCHER", "Watch"]

LAUNCHER = "CHAINRULE_LAUNCHER"  # the process id of `chainrule launch`, which ends us
FOR_THE_LAUNCHER = 5.0  # seconds in which it does so
LAST = 3.0  # seconds for a process to end by itself


class Watch:
    """The thread that looks after all lines."""

    def __init__(self, meeting: Meeting, mailbox: Mailbox):
        self.rank, self.places, self.mailbox = meeting.rank, meeting.places, mailbox
        self.lines = meeting.lines
        self.lost = ""
        self.over = False
        self._news = threading.Event()
        self._gone: set[int] = set()  # who said that it is done
        launcher = int(os.environ.get(LAUNCHER, 0))
        self._launcher = launcher if launcher == os.getppid() else 0
        self._saying = threading.Lock()
        threading.Thread(target=self._run, name="chainrule-watch", daemon=True).start()

    def tell(self, word: str, why: str = "") -> None:
        """Says to all others that this process ``left``, ``failed`` or is ``done``."""
        self._say({"rank": self.rank, "word": word, "why": why})

    def wait(self, seconds: float) -> None:
        """Waits until a process is known to be gone, at most so long."""
        self._news.wait(seconds)

    def say_why(self, why: str) -> None:
        """Says, as the last line of this process, why it ends."""
        with contextlib.suppress(OSError):
            os.write(2, f"chainrule: process {self.rank} ends, because {why}\n".encode())

    def _say(self, head: Mapping[str, Any], but: int = -1) -> None:
        with self._saying:
            for rank, line in list(self.lines.items()):
                if rank != but:
                    with contextlib.suppress(OSError):
                        send_message(line, head)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for rank, line in self.lines.items():
                selector.register(line, selectors.EVENT_READ, rank)
            while not self.over:
                if self._launcher and os.getppid() != self._launcher:
                    self._end(f"`chainrule launch` (pid {self._launcher}) is gone")
                for key, _ in selector.select(0.5):
                    if not self._hear(key.data):
                        selector.unregister(key.fileobj)

    def _hear(self, rank: int) -> bool:
        """Takes what comes over a line; False if it is at its end."""
        try:
            head, _ = read_message(self.lines[rank], 0)
        except (EOFError, ConnectionError, ValueError):
            why = "ended without a word: was it killed, or was its memory at an end?"
        except OSError:
            why = f"has not answered for {SILENCE} s: its machine or the network failed"
        else:
            self._heard(head)
            return True
        if rank not in self._gone and not self.over:
            self._lose(rank, why)
        return False

    def _heard(self, head: dict[str, Any]) -> None:
        rank, word, why = head["rank"], head["word"], head["why"]
        if self.rank == 0 and word != "done":
            self._say(head, but=rank)
        if word == "left":
            self.mailbox.left(rank)
        elif word == "done":
            self._gone.add(rank)
        else:
            self._gone.add(rank)
            self._lose(rank, why)

    def _lose(self, rank: int, why: str) -> None:
        """A process is gone, so all end."""
        if self.lost:
            return
        self.lost = f"process {rank} of {len(self.places)} ({self.places[rank]}) {why}"
        self._news.set()
        if self.rank == 0:
            self._say({"rank": rank, "word": "lost", "why": why}, but=rank)
        ends = threading.Thread(target=self._after, name="chainrule-watch", daemon=True)
        ends.start()

    def _after(self) -> None:
        pause = threading.Event()
        if self._launcher:
            pause.wait(FOR_THE_LAUNCHER)
        self.mailbox.lost(self.lost)
        pause.wait(LAST)
        self._end(self.lost)

    def _end(self, why: str) -> None:
        if self.over:
            return
        with contextlib.suppress(OSError, ValueError):  # of pipes that nobody reads any more
            sys.stdout.flush()
        self.say_why(why)
        os._exit(1)
