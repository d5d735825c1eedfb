#!/bin/bash
# Makes .venv what `make demo` (setup.sh demo) or `make test|lint|bench` (setup.sh dev) needs.
# Instant when nothing changed: a stamp in .venv carries a hash of everything the set-up depends on.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'set-up: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

case "${1:-}" in
    demo) requirements=requirements.txt ;;
    dev) requirements=requirements-dev.txt ;;
    *) die "usage: scripts/setup.sh demo|dev" ;;
esac

# The development set contains the demo's, so its stamp serves both. Where the folder stands is part of the hash,
# because programs in .venv/bin carry absolute paths.
stamp_of() { printf '.venv/stamp-%s' "$({ pwd; cat "$1" pyproject.toml; } | sha256sum | cut -c1-16)"; }
if [ -e "$(stamp_of "$requirements")" ] || [ -e "$(stamp_of requirements-dev.txt)" ]; then
    exit 0
fi

python=${PYTHON:-python3}
command -v "$python" >/dev/null || die "no $python found; install Python 3.11 or newer, or set PYTHON"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$python is $("$python" -V 2>&1); 3.11 or newer is needed (set PYTHON to choose another)"
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    scripts/debian-packages.sh venv || die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"
fi

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    say "making .venv with $("$python" -V)"
    rm -rf .venv
    "$python" -m venv .venv
fi
say "installing $requirements (every file is checked against its hash)"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
.venv/bin/python -m pip install --quiet --require-hashes -r "$requirements"
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
rm -f .venv/stamp-*
touch "$(stamp_of "$requirements")"
say "ready"
