"""The jobs of the simulated scheduler: who waits, who runs where, and what becomes of them. `Fleet` owns the queue.

Faithful where it matters: a requeue runs the script again from its top, under the same id, with one restart more; a job
holds its nodes while it completes; a hung job still counts as running.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from daytwo.domain.errors import NotFound, Refused
from daytwo.lab.timeline import Timeline
from daytwo.lab.world import ON_A_NODE, Job, Node

OPT_IN: Final = "daytwo-requeue"
"""The word in a job's comment by which its owner allows a requeue; `Policy.drain.requeue_opt_in` has the same."""

HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job that people of the fleet submit; hours of the shortest and the longest run."""

    name: str
    user: str
    account: str
    gpus: int
    hours: tuple[float, float]
    may_requeue: bool
    opted_in: bool


LARGE: Final = Kind("llm-70b", "alice", "nlp", 8, (24, 72), may_requeue=True, opted_in=True)
LARGE_WIDTH: Final = 8
KINDS: Final = (
    Kind("finetune-8b", "bob", "nlp", 8, (4, 12), may_requeue=True, opted_in=True),
    Kind("eval-suite", "carol", "eval", 4, (1, 4), may_requeue=True, opted_in=False),
    Kind("diffusion", "dave", "vision", 8, (6, 20), may_requeue=True, opted_in=True),
    Kind("notebook", "erin", "vision", 4, (2, 8), may_requeue=False, opted_in=False),
)


class JobQueue:
    """All jobs, by id. `is_open` says whether the scheduler may put work on a node."""

    def __init__(
        self,
        timeline: Timeline,
        nodes: Mapping[str, Node],
        rng: random.Random,
        *,
        is_open: Callable[[Node], bool],
        epilog: float,
        requeue_delay: float,
    ) -> None:
        self._timeline = timeline
        self._nodes = nodes
        self._rng = rng
        self._is_open = is_open
        self._epilog = epilog
        self._requeue_delay = requeue_delay
        self._next_id = 88_213
        self.jobs: dict[str, Job] = {}
        self._held: dict[str, list[Job]] = {name: [] for name in nodes}

    def on(self, node: str) -> list[Job]:
        """Return the jobs that hold a part of `node`, completing ones too."""
        return list(self._held[node])

    def on_gpu(self, node: str) -> Job | None:
        """Return the first job that runs on `node`, whose process a kernel line may name."""
        return next((job for job in self.on(node) if job.state == "RUNNING"), None)

    def submit(self, kind: Kind, *, width: int = 1) -> Job:
        """Queue a job of a kind and return it."""
        length = self._rng.uniform(*kind.hours) * HOUR
        job = Job(
            id=str(self._next_id),
            name=kind.name,
            user=kind.user,
            account=kind.account,
            width=width,
            gpus_per_node=min(kind.gpus, self._most_gpus()),
            length=length,
            time_limit=max(kind.hours[1] * HOUR, length),
            may_requeue=kind.may_requeue,
            comment=OPT_IN if kind.opted_in else "",
            eligible=self._timeline.now,
        )
        self._next_id += 1
        self.jobs[job.id] = job
        return job

    def place(self) -> None:
        """One cycle of the scheduler: start what fits, oldest first."""
        free = self.free()
        for job in list(self.jobs.values()):
            if job.state == "PENDING" and job.eligible <= self._timeline.now:
                fitting = [name for name, gpus in free.items() if gpus >= job.gpus_per_node]
                if len(fitting) >= job.width:
                    self.start(job, tuple(fitting[: job.width]))
                    free |= {name: free[name] - job.gpus_per_node for name in job.nodes}

    def free(self) -> dict[str, int]:
        """Return how many GPUs of each open node no job holds."""
        return {name: self._free(node) for name, node in self._nodes.items() if self._is_open(node)}

    def start(self, job: Job, nodes: tuple[str, ...], *, elapsed: float = 0.0) -> None:
        """Run `job` on `nodes`, as if it had begun `elapsed` seconds ago."""
        job.state, job.nodes, job.started, job.hung = "RUNNING", nodes, self._timeline.now - elapsed, False
        for name in nodes:
            self._held[name].append(job)
        self._end_after(job, job.length - elapsed, "COMPLETED")

    def hang(self, job: Job, watchdog: float) -> None:
        """Let a rank of `job` die silently: the others wait until their watchdog gives up after `watchdog` seconds."""
        if not job.hung:
            job.hung = True
            self._end_after(job, watchdog, "FAILED")

    def end(self, job: Job, state: str) -> None:
        """Let a running job end in `state`; it holds its nodes until its epilog is done."""
        job.state, job.then = "COMPLETING", state
        self._timeline.after(self._epilog, lambda: self._leave(job))

    def requeue(self, job_id: str) -> None:
        """Kill a running job and queue it again. Like Slurm's, it asks neither where it runs nor who opted in."""
        job = self.jobs.get(job_id)
        if job is None:
            raise NotFound(f"job: found {job_id!r}; allowed is a job that the scheduler still knows")
        if not job.may_requeue or job.state != "RUNNING":
            raise Refused(f"job {job_id} is {job.state} and may{'' if job.may_requeue else ' not'} be requeued")
        self.end(job, "PENDING")

    def lose(self, node: str) -> None:
        """The scheduler gives up a node that does not answer: its jobs are requeued if they may be, else they fail."""
        for job in self.on(node):
            if job.state == "RUNNING" and job.may_requeue:
                self.requeue(job.id)
            elif job.state == "RUNNING":
                self.end(job, "NODE_FAIL")

    def elapsed(self, job: Job) -> float | None:
        """Return for how many simulated seconds a job has run; `None` for one that does not."""
        return self._timeline.now - job.started if job.state in ON_A_NODE else None

    def forget(self, age: float) -> None:
        """Drop jobs that ended more than `age` seconds ago."""
        for job in list(self.jobs.values()):
            if job.state not in ("PENDING", *ON_A_NODE) and self._timeline.now - job.eligible > age:
                del self.jobs[job.id]

    def _free(self, node: Node) -> int:
        return node.gpus_registered - sum(job.gpus_per_node for job in self._held[node.name])

    def _end_after(self, job: Job, seconds: float, state: str) -> None:
        started, hung = job.started, job.hung

        def end() -> None:
            # A run that was requeued or that hung meanwhile ends by another event.
            if job.state == "RUNNING" and (job.started, job.hung) == (started, hung):
                self.end(job, state)

        self._timeline.after(max(0.0, seconds), end)

    def _leave(self, job: Job) -> None:
        requeued = job.then == "PENDING"
        for name in job.nodes:
            self._held[name].remove(job)
        job.state, job.nodes = job.then, ()
        job.restarts += requeued
        job.eligible = self._timeline.now + (self._requeue_delay if requeued else 0.0)

    def _most_gpus(self) -> int:
        return max(len(node.gpus) for node in self._nodes.values())
