"""The agent as its service manager runs it: real processes, a real HTTP server, real kernel logs."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from daytwo.lab.fake_nvml.harness import FakeNvml
from tests.agent.processes import AgentProcess, HttpGateway, kmsg_writable, until, write_kmsg

needs_kmsg = pytest.mark.skipif(not kmsg_writable(), reason="/dev/kmsg is not writable: run as root")

FORBIDDEN = ("temporalio", "pydantic", "sqlmodel", "sqlalchemy", "fastapi", "httpx", "click", "yaml", "kubernetes")


def xid(code: int, pci: str = "0000:1a:00") -> str:
    return f"NVRM: Xid (PCI:{pci}): {code}, pid='<unknown>', name=<unknown>, something broke"


def random_address() -> str:
    """A PCI address of its own for each test: /dev/kmsg is shared by everything on the machine."""
    return f"{random.randrange(0x1000, 0xFFFF):04x}:{random.randrange(256):02x}:{random.randrange(32):02x}"


@pytest.fixture
def started(agent: AgentProcess, http_gateway: HttpGateway) -> AgentProcess:
    agent.start()
    until(lambda: any(pulse["inventory"] for pulse in http_gateway.pulses()))
    return agent


def test_a_line_in_the_kernel_log_becomes_a_finding(
    started: AgentProcess, http_gateway: HttpGateway, fake_nvml: FakeNvml
) -> None:
    started.write(f"4,17,1000000,-;{xid(79)}")
    record = until(lambda: http_gateway.records("xid-79"))[0]
    assert (record["entity"], record["source"]) == (fake_nvml.uuid(0), "kernel-log")


def test_a_gpu_lost_to_nvml_becomes_a_finding(
    started: AgentProcess, http_gateway: HttpGateway, fake_nvml: FakeNvml
) -> None:
    fake_nvml.lose(1)
    assert until(lambda: http_gateway.records("gpu-off-bus"))[0]["entity"] == fake_nvml.uuid(1)


def test_a_hanging_driver_becomes_a_finding_and_is_cleared(
    started: AgentProcess, http_gateway: HttpGateway, fake_nvml: FakeNvml
) -> None:
    fake_nvml.inject("nvmlDeviceGetName", delay_ms=60_000)
    until(lambda: http_gateway.records("nvml-unreadable"))
    fake_nvml.heal()
    until(lambda: len(http_gateway.records("nvml-unreadable")) == 2)
    assert [record["status"] for record in http_gateway.records("nvml-unreadable")] == ["firing", "cleared"]


def test_a_probe_is_answered(started: AgentProcess, http_gateway: HttpGateway, fake_nvml: FakeNvml) -> None:
    http_gateway.requests = [{"id": "r1", "kind": "probe-gpus", "ttl_seconds": 30, "arguments": {}}]
    answer = until(lambda: http_gateway.answers("done"))[0]
    assert [gpu["uuid"] for gpu in answer["result"]["gpus"]] == [fake_nvml.uuid(0), fake_nvml.uuid(1)]
    assert len(http_gateway.answers("accepted")) >= 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second(started: AgentProcess, number: int) -> None:
    assert started.process is not None
    began = time.monotonic()
    started.process.send_signal(number)
    assert started.process.wait(5.0) == 0
    assert time.monotonic() - began < 1.0


def test_a_signal_ends_it_while_the_driver_hangs(started: AgentProcess, fake_nvml: FakeNvml) -> None:
    fake_nvml.inject("nvmlDeviceGetCount_v2", delay_ms=60_000)
    time.sleep(0.3)
    assert started.process is not None
    started.process.terminate()
    assert started.process.wait(1.5) == 0


def test_old_lines_give_nothing_new_after_kill_9(started: AgentProcess, http_gateway: HttpGateway) -> None:
    started.write(xid(79), xid(48))
    until(lambda: http_gateway.records("xid-48"))
    started.kill()
    started.write(xid(95))
    started.start()
    until(lambda: http_gateway.records("xid-95"))
    # One whose acknowledgement the kill cut off comes again under its own number.
    by_number = {record["sequence"]: record["fault"] for record in http_gateway.records()}
    assert by_number == {1: "xid-79", 2: "xid-48", 3: "xid-95"}


def test_what_was_not_acknowledged_is_sent_after_kill_9(started: AgentProcess, http_gateway: HttpGateway) -> None:
    http_gateway.refusals = [(503, {})] * 1_000
    started.write(xid(79))
    until(lambda: http_gateway.records("xid-79"))
    started.kill()
    http_gateway.refusals = []
    http_gateway.calls.clear()
    started.start()
    assert until(lambda: http_gateway.records("xid-79"))[0]["count"] == 1


def test_nothing_is_lost_over_many_kills(agent: AgentProcess, http_gateway: HttpGateway) -> None:
    """Counted over what the gateway would take: a record that comes twice has the number it had."""
    for round_ in range(4):
        agent.start()
        agent.write(*(xid(79) for _ in range(25)))
        time.sleep(0.15 + 0.1 * round_)
        agent.kill()
    agent.start()
    until(lambda: taken(http_gateway) >= 100, 20.0)
    assert taken(http_gateway) == 100


def taken(gateway: HttpGateway) -> int:
    records = {(record["kernel_sequence"], record["count"]): record["count"] for record in gateway.records("xid-79")}
    return sum(records.values())


def test_another_agent_on_the_same_folder_is_refused(started: AgentProcess, tmp_path: Path) -> None:
    first, started.process = started.process, None
    second = started.start()
    assert second.wait(5.0) == 1
    assert f"{tmp_path}/state is used by another agent" in started.said.read_text()
    started.process = first


def test_a_boot_is_read_from_the_file_that_a_test_names(
    agent: AgentProcess, http_gateway: HttpGateway, tmp_path: Path
) -> None:
    (tmp_path / "boot_id").write_text("boot-of-node-7\n")
    agent.start(environment={"DAYTWO_TEST_BOOT_ID_FILE": str(tmp_path / "boot_id")})
    assert until(http_gateway.pulses)[0]["boot_id"] == "boot-of-node-7"


@needs_kmsg
def test_a_record_in_the_real_kernel_log_becomes_a_finding(agent: AgentProcess, http_gateway: HttpGateway) -> None:
    pci = random_address()
    agent.start("--accept-user-records", kernel_log="kmsg")
    until(lambda: any(pulse["inventory"] for pulse in http_gateway.pulses()))
    write_kmsg(xid(79, pci))
    record = until(lambda: about(http_gateway, pci))[0]
    assert (record["fault"], isinstance(record["kernel_sequence"], int)) == ("xid-79", True)


@needs_kmsg
def test_a_record_that_a_process_wrote_is_not_believed(agent: AgentProcess, http_gateway: HttpGateway) -> None:
    pci = random_address()
    agent.start(kernel_log="kmsg")
    until(lambda: any(pulse["inventory"] for pulse in http_gateway.pulses()))
    write_kmsg(xid(79, pci))
    time.sleep(0.3)
    assert about(http_gateway, pci) == []


def is_told(gateway: HttpGateway, pci: str, fault: str) -> bool:
    return any(record["fault"] == fault for record in about(gateway, pci))


@needs_kmsg
def test_the_real_kernel_log_gives_nothing_twice_after_kill_9(agent: AgentProcess, http_gateway: HttpGateway) -> None:
    pci = random_address()
    for code in (79, 48):
        agent.start("--accept-user-records", kernel_log="kmsg")
        write_kmsg(xid(code, pci))
        until(partial(is_told, http_gateway, pci, f"xid-{code}"))
        agent.kill()
    by_number = {record["sequence"]: record["fault"] for record in about(http_gateway, pci)}
    assert list(by_number.values()) == ["xid-79", "xid-48"]


def about(gateway: HttpGateway, pci: str) -> list[dict[str, object]]:
    return [record for record in gateway.records() if record["entity"] == f"pci:{pci}"]


GOOD = ("--node", "n1", "--gateway", "http://g", "--token-file", "/t", "--state-dir", "/s")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gateway", "ftp://g"), "argument --gateway: found 'ftp://g'; allowed is a URL that starts with http"),
        (("--gateway", "http://"), "argument --gateway: found 'http://'"),
        (("--gateway", "http://g:99999"), "argument --gateway: found"),
        (("--node", "a/b"), "argument --node: found 'a/b'; allowed is a name without a slash"),
        (
            ("--kernel-log", "syslog"),
            "argument --kernel-log: found 'syslog'; allowed is auto, kmsg, journal, journal:/abs",
        ),
        (("--kernel-log", "journal:here"), "argument --kernel-log: found 'journal:here'"),
        (("--kernel-log", "file:relative"), "argument --kernel-log: found 'file:relative'"),
        (("--expect-gpus", "-1"), "argument --expect-gpus: "),
        (("--expect-gpus", "many"), "argument --expect-gpus: found 'many'; allowed is a whole number from 0 to 1024"),
        (("--pulse-seconds", "0"), "argument --pulse-seconds: found '0'; allowed is a number of seconds from 0.1"),
        (("--ca-file", "/nowhere"), "argument --ca-file: found '/nowhere'; allowed is a file that exists"),
        (("--nonsense", "1"), "unrecognized arguments: --nonsense"),
    ],
)
def test_a_bad_argument_is_named_with_what_is_allowed(arguments: tuple[str, ...], said: str) -> None:
    done = run_agent(*GOOD, *arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_bad_variable_is_named_like_its_option() -> None:
    done = run_agent(*GOOD[:-2], environment={"DAYTWO_AGENT_EXPECT_GPUS": "many", "PATH": "/usr/bin"})
    assert (done.returncode, "argument --expect-gpus: found 'many'" in done.stderr) == (2, True), done.stderr


def test_what_is_required_is_named() -> None:
    done = run_agent("--node", "n1")
    assert "required: --gateway, --token-file" in done.stderr


def run_agent(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "daytwo.agent.main", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize("module", ["daytwo.agent.main", "daytwo.agent.gpu_child"])
def test_it_loads_nothing_but_the_standard_library_and_pynvml(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    ours = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert {name for name in ours if not name.startswith("_")} <= {"daytwo", "pynvml"} | editable(ours)
    assert not {name for name in loaded if name.startswith(FORBIDDEN)}


def editable(names: set[str]) -> set[str]:
    """What the interpreter loads at its start, whatever program runs."""
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return names & {name.split(".")[0] for name in bare.stdout.split()}


def test_the_parent_does_not_load_pynvml() -> None:
    program = "import sys, daytwo.agent.main; print('pynvml' in sys.modules, 'daytwo.domain' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
