"""Rows of several requests, joined for a few milliseconds and computed at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from chainrule.data import TableError
from chainrule.data.images import ImageError
from chainrule.serve.limits import Limits
from chainrule.serve.pictures import files_of, mistake_in, takes_images
from chainrule.serve.rows import Row, answers, table_of, wanted
from chainrule.train import FittedNetwork

__all__ = ["Batcher", "Full", "Stopped"]

Answers = list[dict[str, Any]]
Asked = tuple[bool, float | None]  # probabilities, the level of intervals


class Full(RuntimeError):
    """Too many rows wait already."""


class Stopped(RuntimeError):
    """The service ends, and takes no more."""


@dataclass(eq=False)
class _Job:
    """The rows of one request, and who waits for them."""

    rows: Sequence[Row]
    asked: Asked
    future: asyncio.Future[Answers]


class Batcher:
    """Answers rows in the order in which they came, some requests at a time, in one thread.

    The loop that the requests come from stays free meanwhile. A request whose client waits no more
    is passed over.
    """

    def __init__(self, network: FittedNetwork, limits: Limits):
        self.network, self.limits = network, limits
        self.columns = wanted(network)
        self.jobs: deque[_Job] = deque()
        self.waiting = 0  # rows
        self.answered, self.batches = 0, 0
        self.arrived = asyncio.Event()
        self.closed = False
        self.thread = ThreadPoolExecutor(1, "chainrule-serve")
        self.task: asyncio.Task[None] | None = None

    async def answer(self, rows: Sequence[Row], asked: Asked) -> Answers:
        """The answers for rows that are right, in their order."""
        if self.closed:
            raise Stopped("the service is stopping")
        if self.waiting + len(rows) > self.limits.max_waiting:
            raise Full(
                f"{self.waiting} rows wait already, and {self.limits.max_waiting} can; try again "
                "in a moment"
            )
        job = _Job(rows, asked, asyncio.get_running_loop().create_future())
        self.jobs.append(job)
        self.waiting += len(rows)
        self.arrived.set()
        return await job.future

    def start(self) -> None:
        """Begins to answer."""
        self.task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Answers what waits, and ends."""
        self.closed = True
        self.arrived.set()
        if self.task is not None:
            await self.task
        self.thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.arrived.wait()
            if not self.jobs:
                if self.closed:
                    return
                self.arrived.clear()
                continue
            if self.waiting < self.limits.batch_rows and not self.closed:
                await asyncio.sleep(self.limits.batch_wait)
            jobs = self._taken()
            done = await loop.run_in_executor(self.thread, self._answered, jobs)
            for job, found in zip(jobs, done, strict=True):
                _give(job.future, found)

    def _taken(self) -> list[_Job]:
        """The first jobs, at least one, with no more rows than are computed at once."""
        taken: list[_Job] = []
        rows = 0
        while self.jobs and (not taken or rows + len(self.jobs[0].rows) <= self.limits.batch_rows):
            job = self.jobs.popleft()
            self.waiting -= len(job.rows)
            if not job.future.done():
                taken.append(job)
                rows += len(job.rows)
        return taken

    def _answered(self, jobs: list[_Job]) -> list[Answers | Exception]:
        """The answers for each job, or its error."""
        found: dict[int, Answers | Exception] = {}
        for asked in dict.fromkeys([job.asked for job in jobs]):
            group = [job for job in jobs if job.asked == asked]
            for job, each in zip(group, self._joined(group, asked), strict=True):
                found[id(job)] = each
        self.batches += bool(jobs)
        self.answered += sum([len(job.rows) for job in jobs])
        return [found[id(job)] for job in jobs]

    def _joined(self, jobs: list[_Job], asked: Asked) -> list[Answers | Exception]:
        """All rows at once; if that fails each job alone, so that it fails for itself."""
        try:
            together = self._computed([row for job in jobs for row in job.rows], asked)
        except Exception as error:  # noqa: BLE001 - goes to whom it concerns
            if len(jobs) == 1:
                return [error]
            return [found for job in jobs for found in self._joined([job], asked)]
        parts, start = [], 0
        for job in jobs:
            parts.append(together[start : start + len(job.rows)])
            start += len(job.rows)
        return list(parts)

    def _computed(self, rows: Sequence[Row], asked: Asked) -> Answers:
        if takes_images(self.network):
            return self._seen(rows, asked)
        try:
            return answers(self.network, table_of(rows, self.columns), *asked)
        except TableError as error:
            raise TableError(str(error)) from None

    def _seen(self, rows: Sequence[Row], asked: Asked) -> Answers:
        """The answers for images."""
        files = files_of(rows, self.limits.max_pixels)
        try:
            return answers(self.network, files, *asked)
        except ImageError as error:
            raise mistake_in(files, error) from None


def _give(future: asyncio.Future[Answers], found: Answers | Exception) -> None:
    if future.done():  # its client waits no more
        return
    if isinstance(found, Exception):
        future.set_exception(found)
    else:
        future.set_result(found)
