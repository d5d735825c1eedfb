"""`daytwo server migrate`: brings the tables of the store up to date, and ends.

For an installation whose processes may not change tables themselves (deploy/postgresql/roles.sql): run it with the
address of the tables' owner. Elsewhere each process does it when it starts.
"""

from __future__ import annotations

import sys

from daytwo import settings as settings_module
from daytwo.domain.errors import DaytwoError
from daytwo.process import harden
from daytwo.store.engine import Store


def main() -> int:
    """Migrate the store of this installation; return the exit code."""
    harden()
    try:
        store = Store(settings_module.load().store_url)
        try:
            store.migrate()
        finally:
            store.close()
    except DaytwoError as error:
        sys.stderr.write(f"migrate: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
