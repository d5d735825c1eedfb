"""The pages of the documentation that are made from the models, so that they cannot disagree with them.

`python -m daytwo.domain.reference policy > docs/policy.md`; `node-states` likewise. Tests compare.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from daytwo.domain import policy
from daytwo.domain.definition import BmcAccess, ClusterDefinition, CommandHardware, NodeGroup, SlurmAccess
from daytwo.domain.node_states import TABLE
from daytwo.domain.windows import Window

DEFINITION: Final = (ClusterDefinition, NodeGroup, SlurmAccess, BmcAccess, CommandHardware)
POLICY: Final = (
    policy.Policy,
    policy.FaultRule,
    policy.Approval,
    policy.Person,
    policy.Budget,
    policy.Breaker,
    policy.Attempts,
    policy.Flapping,
    policy.Evidence,
    Window,
    policy.Reminders,
    policy.Rivals,
    policy.Drain,
    policy.Verify,
    policy.Timing,
    policy.Retention,
)

_POLICY_HEAD: Final = """\
# Cluster definitions and policy

One YAML file describes a cluster: what it is, which nodes it has, and what its site allows. `daytwo policy check FILE`
names every slip with its line; `python -m daytwo.domain.policy` prints the JSON schema of the policy.

```yaml
name: east
kind: slurm
groups:
  - nodes: ["gpu-[001-016]"]
    pool: h200
    gpus: 8
    domains: [rack-1]
    survives_reboot: {/raid: true}
policy:
  approval:
    people:
      - {name: Alice, roles: [lead], identities: ["cli:alice"]}
  faults:
    thermal-throttle: {mode: recommend, debounce_seconds: 1800}
```

What holds for a fault is looked for in this order: its own rule (`policy.faults`), the rule of its class
(`policy.classes`), `policy.default`, the catalogue. Each proposal names the rule that its action comes from.

"Source: operations 3", "faults 1" and "design 5" name sections of reviews of public operators' practice and of the
design that daytwo was built from. Those papers are not in this repository: take such a value as a reasoned judgement
that your site may overrule.

This page is made from the models: `python -m daytwo.domain.reference policy`.
"""

_NODE_STATES_HEAD: Final = """\
# States of a node

What a person sees first about a node. The first row whose condition holds decides; the last always does. A change of
state is kept with its reason (`daytwo nodes show`).

This page is made from the table in `daytwo/domain/node_states.py`: `python -m daytwo.domain.reference node-states`.
"""


def policy_page() -> str:
    """docs/policy.md."""
    return "\n".join([_POLICY_HEAD, *(_section(model) for model in (*DEFINITION, *POLICY))])


def node_states_page() -> str:
    """docs/node-states.md."""
    rows = [f"| {number} | {row.when} | **{row.state.value}** |" for number, row in enumerate(TABLE, 1)]
    return "\n".join([_NODE_STATES_HEAD, "| | When | State |", "|--:|---|---|", *rows, ""])


PAGES: Final[dict[str, Callable[[], str]]] = {"policy": policy_page, "node-states": node_states_page}


def _section(model: type[BaseModel]) -> str:
    rows = [_row(name, field) for name, field in model.model_fields.items()]
    about = " ".join((model.__doc__ or "").split())
    return "\n".join([f"## {model.__name__}", "", about, "", "| Field | Default | |", "|---|---|---|", *rows, ""])


def _row(name: str, field: FieldInfo) -> str:
    cells = (f"`{name}`", _default(field), (field.description or "").replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "required"
    if value is None or isinstance(value, BaseModel):
        return "" if value is None else f"[{type(value).__name__}](#{type(value).__name__.lower()})"
    return f"`{json.dumps(to_jsonable_python(value))}`"


def main(arguments: list[str]) -> int:
    """Write the page that is named; 2 for a name that is not one."""
    if len(arguments) != 1 or arguments[0] not in PAGES:
        sys.stderr.write(f"page: found {' '.join(arguments) or 'nothing'}, allowed: {', '.join(PAGES)}\n")
        return 2
    sys.stdout.write(PAGES[arguments[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
