"""`quiesce`: the GPUs are left alone for a while. `collect-evidence`: what an act would lose is kept before it."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from daytwo.agent.evidence import LARGEST_ARCHIVE, Evidence, Missing, Part, gather, pack, redacted, run
from daytwo.agent.gpus import NvmlGpus
from daytwo.agent.holders import holders
from daytwo.agent.seams import Reply
from daytwo.lab.fake_nvml.harness import FakeNvml
from tests.agent.fakes import UUIDS, Node
from tests.agent.processes import AgentProcess, HttpGateway, until

GPU_CHECKS = {"nvml", "gpu-count", "thermal", "recovery-action", "memory-errors", "memory-rows"}


@pytest.fixture
def node() -> Node:
    node = Node()
    node.run(1)
    return node


def ask(node: Node, kind: str, id_: str = "r1", **arguments: float) -> None:
    """Let the next pulse bring this request."""
    request = {"id": id_, "kind": kind, "ttl_seconds": 60.0, "arguments": arguments}
    node.gateway.replies = [Reply(200, {"requests": [request], "withdrawn": [], "come_back_seconds": 60})]
    node.run(61)


def results(node: Node) -> list[dict[str, Any]]:
    return [answer["result"] for pulse in node.gateway.pulses for answer in pulse["answers"] if "result" in answer]


def off(node: Node) -> set[str]:
    return {name for name, state in node.agent.checks.items() if state == "off"}


def test_the_gpus_are_let_go_of_and_who_else_holds_them_is_told(node: Node) -> None:
    ask(node, "quiesce", seconds=600)
    assert results(node)[0] | {"quiet_seconds": 0} == {
        "let_go": True,
        "holders": ["dcgm (7)"],
        "error": "",
        "quiet_seconds": 0,
    }
    assert (node.gpus.let_go_calls, off(node)) == (1, GPU_CHECKS)


def test_while_it_is_quiet_no_gpu_is_read_and_nothing_fires_or_clears(node: Node) -> None:
    ask(node, "quiesce", seconds=600)
    before = node.gpus.asked
    node.gpus.gpus.clear()
    node.run(500)
    assert (node.gpus.asked, node.gateway.records) == (before, [])


def test_the_quiet_ends_by_itself(node: Node) -> None:
    ask(node, "quiesce", seconds=300)
    node.run(400)
    assert (off(node), node.agent.checks["nvml"]) == (set(), "ok")


def test_the_quiet_is_ended_by_a_request_for_none(node: Node) -> None:
    ask(node, "quiesce", seconds=3000)
    ask(node, "quiesce", "r2", seconds=0)
    node.run(61)
    assert off(node) == set()


@pytest.mark.parametrize(("seconds", "ends_after"), [(10**9, 3_600.0), (-5, 0.0), ("long", 0.0)])
def test_the_quiet_is_bounded_whatever_is_asked(node: Node, seconds: Any, ends_after: float) -> None:
    ask(node, "quiesce", seconds=seconds)
    node.run(ends_after + 61)
    assert off(node) == set()


def test_a_restart_keeps_the_quiet_and_a_boot_ends_it(node: Node) -> None:
    ask(node, "quiesce", seconds=3000)
    node.restart()
    node.run(61)
    after_restart = off(node)
    node.boot()
    node.run(61)
    assert (after_restart, off(node)) == (GPU_CHECKS, set())


def test_a_reading_that_is_wanted_waits_for_the_end_of_the_quiet(node: Node) -> None:
    ask(node, "quiesce", seconds=100)
    ask(node, "probe-gpus", "r2")
    assert not any("gpus" in result for result in results(node))


def test_evidence_is_collected_from_what_the_agent_knows(node: Node) -> None:
    ask(node, "collect-evidence")
    ((seconds, readings),) = node.collector.asked
    assert (0 < seconds <= 20, readings["checks"]["nvml"], list(readings["memory"])) == (True, "ok", list(UUIDS[:2]))
    assert results(node)[0]["archive"] == "QQ=="


def test_an_archive_is_not_kept_in_the_spool(node: Node) -> None:
    ask(node, "collect-evidence")
    assert "QQ==" not in str(node.journal.load())
    node.restart()
    node.run(61)
    assert len(node.collector.asked) == 1  # it was delivered


def test_an_archive_that_was_not_delivered_is_made_again_after_a_restart(node: Node) -> None:
    request = {"id": "r1", "kind": "collect-evidence", "ttl_seconds": 600.0, "arguments": {}}
    node.gateway.replies = [Reply(200, {"requests": [request], "withdrawn": [], "come_back_seconds": 60})]
    node.gateway.replies += [Reply(0, error="away")] * 50
    node.run(61)
    node.restart()
    node.gateway.replies.clear()
    node.run(61)
    assert len(node.collector.asked) == 2
    assert results(node)[-1]["archive"] == "QQ=="


def test_of_several_archives_one_goes_into_a_pulse(node: Node) -> None:
    requests = [{"id": f"r{n}", "kind": "collect-evidence", "ttl_seconds": 60.0, "arguments": {}} for n in range(3)]
    node.gateway.replies = [Reply(200, {"requests": requests, "withdrawn": [], "come_back_seconds": 60})]
    node.run(200)
    archives = [sum("result" in answer for answer in pulse["answers"]) for pulse in node.gateway.pulses]
    assert (max(archives), sum(archives)) == (1, 3)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("password=hunter2", "password=***"),
        ('{"api_key": "abc123", "gpu": 3}', '{"api_key": "***", "gpu": 3}'),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("SLURM_TOKEN_NAME=abc", "SLURM_TOKEN_NAME=***"),
        ("mount //nas -o user=bob,passwd=hunter2,rw", "mount //nas -o user=bob,passwd=***,rw"),
        ("https://bob:hunter2@proxy:3128/x", "https://bob:***@proxy:3128/x"),
        ("key AKIAABCDEFGHIJKLMNOP here", "key *** here"),
        ("dtn_0123456789abcdef0123", "***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", "*** private key ***\nrest"),
        (
            "NVRM: Xid (PCI:0000:1a:00): 79, pid=1896, name=python",
            "NVRM: Xid (PCI:0000:1a:00): 79, pid=1896, name=python",
        ),
    ],
)
def test_what_looks_like_a_secret_is_struck_out(line: str, left: str) -> None:
    assert redacted(line.encode()) == left.encode()


def unpacked(result: dict[str, Any]) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(result["archive"]))) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}


def test_an_archive_is_cut_until_it_fits_and_says_so() -> None:
    noise = os.urandom(400_000)
    result = pack([Part("kernel.log", noise), Part("readings.json", b"{}")])
    kept = unpacked(result)
    assert (int(str(result["size"])) <= LARGEST_ARCHIVE, noise.endswith(kept["kernel.log"]), kept["readings.json"]) == (
        True,
        True,
        b"{}",
    )
    assert [part["truncated"] for part in result["parts"]] == [True, False]


def test_what_cannot_be_had_is_named_and_holds_up_nothing() -> None:
    def fails(_: float) -> bytes:
        raise Missing("nvidia-smi is not installed")

    parts = gather([("a.txt", fails), ("b.txt", lambda _: b"here")], 5.0)
    assert [(part.data, part.error) for part in parts] == [(b"", "nvidia-smi is not installed"), (b"here", "")]


def test_after_the_time_is_over_nothing_more_is_tried() -> None:
    parts = gather([("a.txt", lambda _: time.sleep(0.2) or b"slow"), ("b.txt", lambda _: b"late")], 0.1)
    assert [part.error for part in parts] == ["", "no time was left for it"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["no-such-program"], "no-such-program is not installed"),
        (["sh", "-c", "echo no device >&2; exit 9"], "sh ended with status 9: no device"),
        (["sh", "-c", "echo token=abc >&2; exit 9"], "sh ended with status 9: token=***"),
    ],
)
def test_a_program_that_fails_says_why(program: list[str], said: str) -> None:
    with pytest.raises(Missing) as caught:
        run(program, 5.0)
    assert str(caught.value) == said


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(Missing, match="was killed after"):
        run(["sh", "-c", f"(sleep 2; touch {tmp_path}/late) & sleep 60"], 0.3)
    time.sleep(2.0)
    assert (time.monotonic() - began < 5.0, (tmp_path / "late").exists()) == (True, False)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with the vendor's programs as far as they are asked, and nothing else of them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    scripts = {
        "nvidia-smi": 'echo "Product Name : H100"',
        "nvidia-bug-report.sh": 'echo report | gzip > "$3.gz"',
        "dmesg": 'echo "NVRM: Xid (PCI:0000:1a:00): 79"; echo "password=hunter2"',
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def collected(source: str, path: Path, readings: dict[str, Any] | None = None) -> dict[str, Any]:
    evidence = Evidence(source, lambda: None, path=f"{path}:/usr/bin:/bin")
    evidence.ask(10.0, readings or {"checks": {}})
    found = until(evidence.collect)
    evidence.close()
    return found


def test_everything_that_can_be_had_is_in_the_archive(programs: Path) -> None:
    found = unpacked(collected("kmsg", programs))
    assert list(found) == ["readings.json", "kernel.log", "nvidia-smi.txt", "nvidia-bug-report.log.gz"]
    assert found["nvidia-smi.txt"] == b"Product Name : H100\n"
    assert found["kernel.log"] == b"NVRM: Xid (PCI:0000:1a:00): 79\npassword=***\n"


def test_the_kernel_log_is_the_one_that_the_agent_reads(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text("NVRM: from the file\n")
    assert unpacked(collected(f"file:{tmp_path}/kern.log", programs))["kernel.log"] == b"NVRM: from the file\n"


def test_while_it_is_quiet_the_vendors_programs_are_not_run(programs: Path) -> None:
    assert list(unpacked(collected("kmsg", programs, {"quiesced": True}))) == ["readings.json", "kernel.log"]


@pytest.fixture
def gpus(nvml_library: Path, fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> Iterator[NvmlGpus]:
    for name, value in fake_nvml.environment(nvml_library).items():
        monkeypatch.setenv(name, value)
    gpus = NvmlGpus(lambda: None)
    yield gpus
    gpus.close()


@pytest.mark.parametrize("hangs", [False, True])
def test_the_real_child_ends_within_five_seconds_also_from_a_call_that_hangs(
    gpus: NvmlGpus, fake_nvml: FakeNvml, hangs: bool
) -> None:
    if hangs:
        fake_nvml.inject("nvmlDeviceGetName", delay_ms=60_000, times=1)
        gpus.ask(30.0)
        time.sleep(0.5)
    else:
        gpus.ask(5.0)
        until(gpus.collect)
    gpus.let_go()
    began = time.monotonic()
    assert until(gpus.collect_let_go).done
    assert time.monotonic() - began < 5.0
    assert not holders(str(fake_nvml.path))


def test_after_letting_go_the_gpus_are_read_again(gpus: NvmlGpus) -> None:
    gpus.let_go()
    until(gpus.collect_let_go)
    gpus.ask(30.0)
    assert len(until(gpus.collect, 30.0).gpus) == 2


def test_who_holds_a_device_is_named(tmp_path: Path) -> None:
    device = tmp_path / "nvidia0"
    device.touch()
    program = "import sys; held = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program, str(device)], stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        other.stdout.readline()
        found = holders(str(tmp_path / "nvidia"))
        other.communicate()
    assert [name.split()[-1] for name in found] == [f"({other.pid})"]


def is_done(gateway: HttpGateway, kind: str) -> bool:
    return any(answer["id"] == kind for answer in gateway.answers("done"))


def test_a_real_agent_collects_and_goes_quiet(agent: AgentProcess, http_gateway: HttpGateway) -> None:
    agent.start()
    until(http_gateway.pulses, 30.0)
    agent.write("NVRM: loading driver")
    for kind, arguments in (("collect-evidence", {}), ("quiesce", {"seconds": 60})):
        http_gateway.requests = [{"id": kind, "kind": kind, "ttl_seconds": 30, "arguments": arguments}]
        until(partial(is_done, http_gateway, kind), 30.0)
    evidence, quiet = (answer["result"] for answer in http_gateway.answers("done")[:2])
    assert unpacked(evidence)["kernel.log"] == b"NVRM: loading driver\n"
    assert quiet["let_go"]
