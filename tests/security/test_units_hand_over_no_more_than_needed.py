"""The units of systemd, as text: what each may reach, and whose files are whose."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).parents[2] / "deploy/systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
OF_EVERY_UNIT = {
    "UMask=0077",
    "LimitCORE=0",
    "NoNewPrivileges=yes",
    "PrivateTmp=yes",
    "ProtectHome=yes",
    "ProtectSystem=strict",
    "ProtectControlGroups=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "RestrictNamespaces=yes",
    "RestrictSUIDSGID=yes",
    "StateDirectoryMode=0700",
    "SystemCallArchitectures=native",
}
OF_THE_PLANE = {"User=daytwo", "CapabilityBoundingSet=", "PrivateDevices=yes", "ProtectKernelLogs=yes"}


def directives(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith(("#", "["))]


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_is_confined(unit: Path) -> None:
    wanted = OF_EVERY_UNIT | (set() if "agent" in unit.name else OF_THE_PLANE)
    assert wanted - set(directives(unit)) == set()


def test_the_agent_keeps_one_power_of_root() -> None:
    assert "CapabilityBoundingSet=CAP_SYSLOG" in directives(SYSTEMD / "daytwo-agent.service")


def test_the_gateway_reads_no_file_of_the_others() -> None:
    apart = directives(SYSTEMD / "daytwo@gateway.service.d/apart.conf")
    assert {"User=daytwo-gateway", "StateDirectory=", "RuntimeDirectory=", "EnvironmentFile="} <= set(apart)
    assert [line for line in apart if re.search(r"/var/lib/daytwo$|daytwo\.env|worker|service\.env", line)] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_gateway_apart(tmp_path: Path) -> None:
    unit = tmp_path / "daytwo@gateway.service"
    text = (SYSTEMD / "daytwo@.service").read_text()
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE))
    shutil.copytree(SYSTEMD / "daytwo@gateway.service.d", tmp_path / "daytwo@gateway.service.d")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
