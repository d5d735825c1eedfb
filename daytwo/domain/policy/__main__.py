"""`python -m daytwo.domain.policy`: the JSON schema of a policy."""

from __future__ import annotations

import json
import sys

from daytwo.domain.policy import schema

sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
