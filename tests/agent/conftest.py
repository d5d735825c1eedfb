"""A library without GPUs, a gateway that is only a small HTTP server, and agents as real processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from daytwo.lab.fake_nvml.harness import CompilerMissing, FakeNvml, build
from tests.agent.processes import AgentProcess, HttpGateway


@pytest.fixture(scope="session")
def nvml_library() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "daytwo" / "fake_nvml"
    try:
        return build(cache)
    except CompilerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def fake_nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path / "gpus", gpus=2)


@pytest.fixture
def http_gateway() -> Iterator[HttpGateway]:
    with HttpGateway() as gateway:
        yield gateway


@pytest.fixture
def agent(tmp_path: Path, http_gateway: HttpGateway, nvml_library: Path, fake_nvml: FakeNvml) -> Iterator[AgentProcess]:
    process = AgentProcess(tmp_path, http_gateway.url, fake_nvml.environment(nvml_library))
    yield process
    process.kill()
