"""A short, fixed sample of what `make fuzz` does for as long as one likes: whatever is read is read, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings

from daytwo.domain.load_definition import load_definitions
from daytwo.schedulers import slurm_text
from tests.fuzz import samples, targets
from tests.fuzz.strategies import garbled
from tests.fuzz.targets import QUIET, RAW, SHAPED, Talk, Target, ask_everything

SAMPLE = settings(QUIET, max_examples=60, derandomize=True)


@pytest.mark.parametrize("target", RAW, ids=lambda target: target.name)
def test_good_samples_are_read(target: Target) -> None:
    for sample in target.samples:
        target.feed(sample)


def test_undamaged_answers_are_understood() -> None:
    ask_everything(Talk(samples.DOCUMENTS))
    load_definitions(yaml.safe_dump(samples.DEFINITION), "east.yaml")
    assert slurm_text.read_nodes(json.dumps(samples.NODES))
    assert slurm_text.read_jobs(json.dumps(samples.JOBS))


FOUND = (
    (targets.definition, b"- " * 3000),
    (targets.definition, b"? " * 2000),
    (targets.definition, b"groups: [{nodes: ['n[" + b"1-20000," * 5000 + b"1]']}]"),
    (targets.slurm_text_answers, "gpu:²".encode()),
    (targets.slurm_text_answers, b"n[" + b"1-262144," * 2000 + b"1]"),
    (targets.slurm_text_answers, b"n[1-" + b"9" * 5000 + b"]"),
    (targets.slurm_json, b'{"nodes": [{"boot_time": {"set": true, "number": ' + b"6" * 80 + b"}}]}"),
    (targets.slurm_json, b'{"nodes": [{"name": "n", "state": 5}]}'),
    (targets.slurm_json, b'{"jobs": [{"job_state": []}]}'),
    (targets.a_spool, b'{"stream": 1, "last": [], "dropped": "x"}'),
    (targets.a_spool, b'{"r": {"sequence": 1}}\n{"drop": [[]]}'),
    (targets.kernel_lines, b"NVRM: Xid (PCI:0000:1a:00): 79, pid=1, name=" + b"x" * 9000),
)


@pytest.mark.parametrize(("feed", "data"), FOUND, ids=lambda part: getattr(part, "__name__", ""))
def test_what_the_fuzzer_found_stays_mended(feed: Callable[[bytes], object], data: bytes) -> None:
    feed(data)


@pytest.mark.parametrize("target", RAW, ids=lambda target: target.name)
def test_garbled_samples_are_read_or_refused(target: Target) -> None:
    SAMPLE(given(garbled(target.samples))(target.feed))()


@pytest.mark.parametrize("test", SHAPED, ids=lambda test: test.__name__)
def test_what_is_nearly_right_is_read_or_refused(test: Callable[[], None]) -> None:
    SAMPLE(test)()
