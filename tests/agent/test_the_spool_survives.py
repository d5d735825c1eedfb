from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daytwo.agent.changes import Change
from daytwo.agent.journal import DiskJournal, Entry, Locked, MemoryJournal, read_entries
from daytwo.agent.spool import Spool
from tests.agent.processes import until


def change(fault: str = "xid-79", entity: str = "GPU-1", size: int = 10) -> Change:
    return Change(fault, entity, "firing", 1.0, 2.0, "kernel-log", "boot-1", evidence=("x" * size,))


def sequences(spool: Spool) -> list[int]:
    return [record["sequence"] for record in spool.batch(10_000, 10**9)]


@pytest.fixture
def journal(tmp_path: Path) -> DiskJournal:
    return DiskJournal(tmp_path)


def reopened(journal: DiskJournal, folder: Path) -> Spool:
    journal.close()
    return Spool(DiskJournal(folder))


def test_records_memory_and_stream_come_back(journal: DiskJournal, tmp_path: Path) -> None:
    spool = Spool(journal)
    spool.add([change(), change("xid-48")])
    spool.use_stream(3)
    spool.remember("position", {"boot_id": "b", "position": [7]})
    spool.commit()
    again = reopened(journal, tmp_path)
    assert (sequences(again), again.stream, again.recall("position")["position"]) == ([1, 2], 3, [7])


def test_numbers_go_on_after_everything_was_acknowledged(journal: DiskJournal, tmp_path: Path) -> None:
    spool = Spool(journal)
    spool.add([change()])
    spool.acknowledge(1)
    spool.commit()
    again = reopened(journal, tmp_path)
    again.add([change()])
    assert sequences(again) == [2]


@pytest.mark.parametrize("damage", [b'{"r": {"sequence": 9, "fau', b"\x00\xff\x00\n", b"[]\n", b'"x"', b'{"r": 5}\n'])
def test_a_torn_or_damaged_line_costs_only_itself(journal: DiskJournal, tmp_path: Path, damage: bytes) -> None:
    Spool(journal).commit()
    spool = Spool(journal)
    spool.add([change()])
    spool.commit()
    with (tmp_path / "spool.jsonl").open("ab") as file:
        file.write(damage)
    again = reopened(journal, tmp_path)
    again.add([change()])
    again.commit()
    written = MemoryJournal()
    written.rewrite(read_entries(tmp_path / "spool.jsonl"))
    assert sequences(Spool(written)) == [1, 2]


def test_two_agents_cannot_share_a_spool(journal: DiskJournal, tmp_path: Path) -> None:
    with pytest.raises(Locked, match=str(tmp_path)):
        DiskJournal(tmp_path)


def test_the_file_stays_small_when_all_is_acknowledged(journal: DiskJournal, tmp_path: Path) -> None:
    spool = Spool(journal)
    for number in range(1, 4_001):
        spool.add([change()])
        spool.acknowledge(number)
        spool.commit()
    assert (tmp_path / "spool.jsonl").stat().st_size < 500_000


def test_overtaken_records_are_dropped_first_and_counted() -> None:
    spool = Spool(MemoryJournal(), max_records=10)
    spool.add([change("xid-48"), *(change() for _ in range(10))])
    faults = [record["fault"] for record in spool.batch(100, 10**9)]
    assert faults[0] == "xid-48"
    assert spool.dropped == 11 - len(faults) > 0


def test_the_bound_on_bytes_holds() -> None:
    spool = Spool(MemoryJournal(), max_bytes=10_000)
    spool.add(change(entity=f"GPU-{number}", size=400) for number in range(100))
    assert len(spool) < 25
    assert sequences(spool)[-1] == 100


def test_a_batch_holds_what_fits_and_at_least_one() -> None:
    spool = Spool(MemoryJournal())
    spool.add(change(size=400) for _ in range(10))
    assert len(spool.batch(100, 2_000)) == 2 + 1
    assert len(spool.batch(100, 1)) == 1
    assert len(spool.batch(3, 10**9)) == 3


def test_a_new_stream_numbers_what_is_left_from_one() -> None:
    spool = Spool(MemoryJournal())
    spool.add([change(), change(), change()])
    spool.use_stream(2)
    spool.acknowledge(1)
    spool.restart_stream()
    spool.add([change()])
    assert (spool.stream, sequences(spool)) == (0, [1, 2, 3])


class FullDisk(MemoryJournal):
    full = True

    def append(self, entries: Sequence[Entry], *, durable: bool) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().append(entries, durable=durable)

    def rewrite(self, entries: Sequence[Entry]) -> None:
        self.append([], durable=True)
        super().rewrite(entries)


def test_a_full_disk_loses_nothing_once_there_is_room() -> None:
    disk = FullDisk()
    spool = Spool(disk)
    spool.add([change()])
    spool.commit()
    assert "No space left" in spool.error
    disk.full = False
    spool.commit()
    assert (spool.error, sequences(Spool(disk))) == ("", [1])


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(["xid-79", "xid-48"])),
        st.tuples(st.just("acknowledge"), st.integers(0, 30)),
        st.tuples(st.just("remember"), st.integers(0, 3)),
        st.tuples(st.just("use_stream"), st.integers(1, 5)),
        st.tuples(st.just("restart_stream"), st.none()),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(OPERATIONS)
def test_what_was_committed_is_what_is_read(operations: list[tuple[str, object]]) -> None:
    journal = MemoryJournal()
    spool = Spool(journal, max_records=8)
    for name, value in operations:
        match name:
            case "add":
                spool.add([change(str(value))])
            case "remember":
                spool.remember("value", value)
            case "restart_stream":
                spool.restart_stream()
            case _:
                getattr(spool, name)(value)
        spool.commit()
    again = Spool(journal, max_records=8)
    assert again.batch(100, 10**9) == spool.batch(100, 10**9)
    assert (again.stream, again.last_sequence, again.dropped) == (spool.stream, spool.last_sequence, spool.dropped)
    assert again.recall("value") == spool.recall("value")


WRITER = """
import sys
from collections.abc import Sequence
from pathlib import Path
from daytwo.agent.changes import Change
from daytwo.agent.journal import DiskJournal
from daytwo.agent.spool import Spool

spool = Spool(DiskJournal(Path(sys.argv[1])))
while True:
    spool.add([Change("xid-79", f"GPU-{spool.last_sequence}", "firing", 1.0, 2.0, "kernel-log", "boot-1")])
    spool.commit()
    print(spool.last_sequence, flush=True)
"""


def test_what_was_said_to_be_kept_survives_kill_9(tmp_path: Path) -> None:
    with (tmp_path / "said").open("wb") as said:
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=said)
    until(lambda: (tmp_path / "said").read_text().count("\n") > 50)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    promised = int((tmp_path / "said").read_text().split("\n")[-2])
    kept = sequences(Spool(DiskJournal(tmp_path)))
    assert kept[:promised] == list(range(1, promised + 1))
