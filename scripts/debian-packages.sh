#!/bin/bash
# Installs the Debian packages that daytwo's tests and demos run against, where root and Debian are there.
#   debian-packages.sh venv     what makes a virtual environment
#   debian-packages.sh slurm    a real Slurm with munge, and a C compiler for the simulated GPU library
#   debian-packages.sh postgres a real PostgreSQL; the tests start one of their own
# Where they cannot be installed: says what is missing, what that skips and how to get it; exit code 3.
set -euo pipefail

case "${1:-}" in
    venv)
        packages=(python3-venv)
        without="no virtual environment can be made"
        ;;
    slurm)
        packages=(slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins gcc libc6-dev)
        without="tests/slurm, the agent's tests on a simulated GPU library and \`make demo ARGS=--slurm\` are skipped"
        ;;
    postgres)
        packages=(postgresql)
        without="the tests of the store on PostgreSQL are skipped"
        ;;
    *)
        echo "usage: debian-packages.sh venv|slurm|postgres" >&2
        exit 2
        ;;
esac

have_dpkg() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
if have_dpkg; then
    for package in "${packages[@]}"; do
        installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || exit 0
fi

if ! have_dpkg; then
    echo "This is not Debian, so packages were not installed: $without, unless their equivalents are here." >&2
    echo "They are known in Debian 12 as: ${packages[*]}" >&2
    exit 3
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Missing Debian packages, and not root to install them: $without." >&2
    echo "To get them: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 3
fi

export DEBIAN_FRONTEND=noninteractive
install=(apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing Debian packages: ${missing[*]}" >&2
# The first try spares a machine with fresh lists the update; one that never had any fails at once.
if ! "${install[@]}" >"$log" 2>&1; then
    apt-get update -q -o DPkg::Lock::Timeout=120 >"$log" 2>&1 && "${install[@]}" >>"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        echo "apt-get could not install ${missing[*]}: $without." >&2
        exit 3
    }
fi
