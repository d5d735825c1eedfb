"""The entry point of `daytwo`. Each noun is a module of this package, imported when its command is called."""

from __future__ import annotations

import os
import sys

import click

import daytwo
from daytwo.cli import exit_codes
from daytwo.cli.failure import from_error, from_usage
from daytwo.cli.lazy import LazyGroup
from daytwo.domain.errors import DaytwoError

TABLE = {
    "up": ("daytwo.cli.up:up", "Run the whole control plane on this machine."),
    "status": ("daytwo.cli.status:status", "The installation in one answer."),
    "repairs": (
        "daytwo.cli.repairs:repairs",
        "What is proposed, decided and done: list, show, approve, dismiss, watch.",
    ),
    "nodes": ("daytwo.cli.nodes:nodes", "The nodes and their state; tokens for their agents."),
    "findings": ("daytwo.cli.findings:findings", "What is seen wrong now, and what was."),
    "faults": ("daytwo.cli.faults:faults", "The catalogue of faults."),
    "clusters": ("daytwo.cli.clusters:clusters", "Cluster definitions: check, apply, list."),
    "policy": ("daytwo.cli.policy:policy", "What a policy comes to: check a file, explain a rule."),
    "freeze": ("daytwo.cli.freeze:freeze", "Stop every act that has not begun."),
    "thaw": ("daytwo.cli.freeze:thaw", "End a freeze."),
    "audit": ("daytwo.cli.audit:audit", "Who did what; and whether the record is whole."),
    "backup": ("daytwo.cli.backup:backup", "Copy the store into a file, while everything goes on."),
    "restore": ("daytwo.cli.backup:restore", "Put the store back to what a file holds."),
    "lab": ("daytwo.cli.lab:lab", "The simulated fleet: break and heal nodes."),
    "server": ("daytwo.cli.server:server", "Prepare a Temporal server and a database."),
    "worker": ("daytwo.cli.processes:worker", "Run the control worker."),
    "controller": ("daytwo.cli.processes:controller", "Run the controller."),
    "gateway": ("daytwo.cli.processes:gateway", "Run the gateway for nodes."),
    "service": ("daytwo.cli.processes:service", "Run the service for people."),
    "agent": ("daytwo.cli.processes:agent", "Run the agent of this node."),
    "completion": ("daytwo.cli.completion:completion", "The completion script for bash, zsh or fish."),
    "help": ("daytwo.cli.help:help_", "Topics: exit-codes, output, environment."),
}


@click.group(cls=LazyGroup, table=TABLE, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(daytwo.__version__, prog_name="daytwo", message="%(prog)s %(version)s")
@click.option(
    "--socket",
    type=click.Path(),
    envvar="DAYTWO_SERVICE_SOCKET",
    help="Unix socket of the service. Default: in DAYTWO_STATE_DIR.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def root(context: click.Context, socket: str | None, debug: bool) -> None:
    """Day-2 operations for GPU clusters.

    A fault is seen, a repair is proposed, a person approves, the node is drained, repaired, tested and returned.

    \b
      daytwo repairs list                 what waits for a decision
      daytwo repairs show r-…             the proposal, with the command that approves it
      daytwo repairs watch r-…            follow it to its end
    """
    context.obj = {"socket": socket, "debug": debug}


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; errors are three lines on standard error, never a traceback."""
    debug = "--debug" in (sys.argv[1:] if arguments is None else arguments)
    try:
        returned = root.main(arguments, prog_name="daytwo", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        from_usage(error).show()
        return exit_codes.USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("Stopped.", err=True)
        return exit_codes.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader (`| head`) has seen enough; click exits by itself when it is the one who notices.
        # Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return exit_codes.OK
    except DaytwoError as error:
        return _failed(error, debug)
    return returned if isinstance(returned, int) else exit_codes.OK


def main() -> None:
    """Run and end the process."""
    code = run()
    if "temporalio" in sys.modules:
        # Its runtime's threads can abort an interpreter that shuts down.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _failed(error: DaytwoError, debug: bool) -> int:
    if debug:
        raise error
    failure = from_error(error)
    failure.show()
    return failure.exit_code


if __name__ == "__main__":
    main()
