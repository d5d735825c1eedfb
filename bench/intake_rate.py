"""How many findings a second intake takes, beside plain inserts of as many rows into the same kind of store.

    .venv/bin/python bench/intake_rate.py --records 4000

Both write the same observations in transactions of the same size, in turns, each into a store of its own: intake with
all that it does (knows duplicates, folds findings, marks nodes due), the other nothing but the rows. `--url` names an
empty PostgreSQL database for each, comma-separated, instead of SQLite. Exits with 1 when intake takes more than the
limit times as long.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Final

from daytwo.domain.definition import ClusterDefinition, NodeGroup
from daytwo.domain.vocabulary import ClusterKind, FindingStatus
from daytwo.intake import Observation, declare, observe
from daytwo.lab.definition import node_names
from daytwo.store.engine import Store
from daytwo.store.tables import ObservationRow

CLUSTER: Final = "bench"
NODES: Final = 100
A_CALL: Final = (1, 20)
"""Records of one call of an agent: a fault, and a burst of a node that has much to say."""
FAULTS: Final = ("xid-79", "xid-48", "xid-119", "recovery-action")
LIMIT: Final = 12.0
CHUNK: Final = 200
"""Records of one sample."""


def observations(count: int, start: int, a_call: int) -> list[list[Observation]]:
    """So many different observations, by call; each call is of one node."""
    now = datetime.now(UTC)
    names = node_names(NODES)
    return [
        [_observation(names[first // a_call % NODES], number, now) for number in range(first, first + a_call)]
        for first in range(start, start + count, a_call)
    ]


def _observation(node: str, number: int, now: datetime) -> Observation:
    fault, entity = FAULTS[number % len(FAULTS)], f"GPU-{number % 8}"
    return Observation(
        CLUSTER,
        node,
        fault,
        entity,
        FindingStatus.FIRING,
        now,
        now,
        "kernel-log",
        boot_id="b",
        kernel_sequence=number,
        stream=1,
        sequence=number,
        evidence=("NVRM: Xid",),
        detail={"xid": 79},
    )


def by_intake(store: Store, calls: Sequence[Sequence[Observation]]) -> None:
    """One transaction a call, as the gateway does it."""
    for call in calls:
        observe(store, call, now=datetime.now(UTC))


def by_insert(store: Store, calls: Sequence[Sequence[Observation]]) -> None:
    """The same rows, and nothing else."""
    for call in calls:
        with store.write() as session:
            session.add_all(_row(seen) for seen in call)


def _row(seen: Observation) -> ObservationRow:
    times = {"first_seen_at": seen.first_seen, "seen_at": seen.last_seen, "received_at": seen.last_seen}
    same = (
        "cluster",
        "node",
        "fault",
        "entity",
        "status",
        "source",
        "boot_id",
        "kernel_sequence",
        "stream",
        "sequence",
    )
    values = {name: getattr(seen, name) for name in same}
    return ObservationRow(**values, **times, evidence=list(seen.evidence), detail=dict(seen.detail))


def seconds(write: Callable[[], None]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    write()
    return time.perf_counter() - began


def measure(intake: Store, plain: Store, records: int, a_call: int) -> tuple[list[float], list[float]]:
    """Seconds of each sample: intake's, and the plain inserts'."""
    ours, theirs = [], []
    offset = 1_000_000 * a_call
    for start in range(offset, offset + records, CHUNK):
        calls = observations(CHUNK, start, a_call)
        ours.append(seconds(partial(by_intake, intake, calls)))
        theirs.append(seconds(partial(by_insert, plain, calls)))
    return ours[1:], theirs[1:]  # the first fills caches


@contextmanager
def stores(url: str | None) -> Iterator[tuple[Store, Store]]:
    """Two stores with the cluster declared, for intake and for the plain inserts."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        urls = url.split(",") if url else [f"sqlite:///{name}/{kind}.db" for kind in ("intake", "plain")]
        intake, plain = (Store(each) for each in urls)
        group = NodeGroup(nodes=node_names(NODES), gpus=8)
        kind = {"kind": ClusterKind.SIMULATED, "simulated_socket": "/lab.sock"}
        for store in (intake, plain):
            store.migrate()
            declare(store, ClusterDefinition(name=CLUSTER, groups=(group,), **kind), now=datetime.now(UTC))
        yield intake, plain
        intake.close()
        plain.close()


def main() -> int:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=4000, help="observations of each kind (default 4000)")
    parser.add_argument("--url", help="two empty PostgreSQL databases, comma-separated; default SQLite")
    given = parser.parse_args()
    worst = 0.0
    print(f"{'records a call':>15}{'intake, 1/s':>14}{'plain, 1/s':>13}{'ratio':>8}   limit")
    with stores(given.url) as (intake, plain):
        for a_call in A_CALL:
            ours, theirs = measure(intake, plain, given.records, a_call)
            ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
            worst = max(worst, ratio)
            rates = [CHUNK / statistics.median(each) for each in (ours, theirs)]
            print(f"{a_call:>15}{rates[0]:>14.0f}{rates[1]:>13.0f}{ratio:>8.1f}   ≤ {LIMIT:g}")
    print(f"\n{given.records} records each; {os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
