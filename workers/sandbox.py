"""The sandbox that workflows run in: the control worker's, and the one in which recorded histories are replayed."""

from __future__ import annotations

from typing import Final

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH: Final = ("daytwo", "activities", "workflows.names", "workflows.timeouts")


def workflow_runner() -> SandboxedWorkflowRunner:
    """The sandbox, with our own pure modules passed through: they are the same in every run."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
