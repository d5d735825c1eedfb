#!/bin/bash
# Installs the Debian packages that daytwo's tests and demos run against, where root and Debian are there.
#   debian-packages.sh venv     what makes a virtual environment
#   debian-packages.sh slurm    a real Slurm with munge, and a C compiler for the simulated GPU library
#   debian-packages.sh journal  what writes and reads a systemd journal, for the agent's tests
#   debian-packages.sh postgres a real PostgreSQL; the tests start one of their own
#   debian-packages.sh slurm-24.11  Slurm 24.11 of Debian 13, unpacked into .cache/slurm-24.11; nothing is installed
# Where they cannot be installed: says what is missing, what that skips and how to get it; exit code 3.
set -euo pipefail

cache=$(cd "$(dirname "$0")/.." && pwd)/.cache
tree=$cache/slurm-24.11

# Unpacks packages of another release into a folder: apt is given lists, caches and a status of its own.
unpack() {
    local work=$1 suite=$2 uri
    shift 2
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "this is not Debian" >&2; return 1; }
    [ "$(dpkg --print-architecture)" = amd64 ] && [ -L /lib64 ] || { echo "this is not a Debian with one /usr on amd64" >&2; return 1; }
    uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' |
        awk -v release="$(. /etc/os-release; echo "${VERSION_CODENAME:-}")" '$2 == release && $3 == "main" { print $1; exit }')
    [ -n "$uri" ] || { echo "apt knows no mirror of Debian" >&2; return 1; }
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    : >"$work/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main" >"$work/sources.list"
    local apt=(apt-get -q -y -o "Dir::State=$work" -o "Dir::State::status=$work/status" -o "Dir::State::Lists=$work/lists"
        -o "Dir::Cache=$work/cache" -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-
        -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Languages=none -o Acquire::Retries=2)
    "${apt[@]}" update && "${apt[@]}" --download-only install "$@" || return 1
    mkdir "$work/root"
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$work/root" --exclude './usr/share/doc' --exclude './usr/share/man' \
            --exclude './usr/share/locale' || return 1
    done
}

if [ "${1:-}" = slurm-24.11 ]; then
    packages=(slurmctld slurmd slurmdbd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin dash coreutils)
    # It holds the list of what it was made of: another list, and it is made anew.
    [ "$(cat "$tree/made-of" 2>/dev/null)" != "${packages[*]}" ] || exit 0
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/unpack.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "unpacking Slurm 24.11 into .cache/slurm-24.11" >&2
    if ! unpack "$work" trixie "${packages[@]}" >"$work/log" 2>&1; then
        tail -n 5 "$work/log" >&2
        echo "Slurm 24.11 could not be had: tests/slurm run on the installed Slurm only." >&2
        exit 3
    fi
    echo "${packages[*]}" >"$work/root/made-of"
    rm -rf "$tree"
    mv "$work/root" "$tree"
    exit 0
fi

case "${1:-}" in
    venv)
        packages=(python3-venv)
        without="no virtual environment can be made"
        ;;
    slurm)
        packages=(slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins gcc libc6-dev)
        packages+=(slurmdbd slurm-wlm-mysql-plugin mariadb-server-core)
        without="tests/slurm, the agent's tests on a simulated GPU library and \`make demo ARGS=--slurm\` are skipped"
        ;;
    journal)
        packages=(systemd systemd-journal-remote)
        without="the agent's tests on a real journal are skipped"
        ;;
    postgres)
        packages=(postgresql)
        without="the tests of the store on PostgreSQL are skipped"
        ;;
    *)
        echo "usage: debian-packages.sh venv|slurm|slurm-24.11|journal|postgres" >&2
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
