# Every target does its own set-up: a bare Debian 12 with Python 3.11 and make is enough.
#   make demo                        a simulated fleet of 16 nodes; one breaks, you approve, it returns
#   make demo ARGS=--auto            the same without you
#   make demo ARGS="--slurm --auto"  on a real Slurm started for the purpose
#   make test [ARGS=tests/domain]    make lint    make bench    make clean
#   make chaos [ARGS="--kills 60"]  kills and stops every process in every state of a repair
#   make fuzz [ARGS="--seconds 600"] feeds every parser what nobody meant

SHELL := /bin/bash
BIN := .venv/bin
ARGS ?=

.PHONY: help demo test lint bench chaos fuzz clean setup-demo setup-dev

help:
	@sed -n 's/^#   //p' Makefile

setup-demo:
	@scripts/setup.sh demo

setup-dev:
	@scripts/setup.sh dev

demo: setup-demo
	@case " $(ARGS) " in *" --slurm "*) scripts/debian-packages.sh slurm ;; esac
	@$(BIN)/python -m daytwo.lab.demo $(ARGS)

test: setup-dev
	@scripts/debian-packages.sh slurm || [ $$? -eq 3 ]
	@scripts/debian-packages.sh slurm-24.11 || [ $$? -eq 3 ]
	@scripts/debian-packages.sh postgres || [ $$? -eq 3 ]
	@scripts/debian-packages.sh journal || [ $$? -eq 3 ]
	@$(BIN)/python -m pytest $(ARGS)

lint: setup-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

bench: setup-dev
	@scripts/debian-packages.sh slurm || [ $$? -eq 3 ]
	@failed=0; for program in bench/*.py; do \
		echo "== $$program"; $(BIN)/python $$program || failed=1; \
	done; exit $$failed

chaos: setup-dev
	@scripts/debian-packages.sh postgres || [ $$? -eq 3 ]
	@$(BIN)/python -m tests.chaos $(ARGS)

fuzz: setup-dev
	@$(BIN)/python -m tests.fuzz.run $(ARGS)

clean:
	rm -rf .venv .daytwo .fuzz .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
