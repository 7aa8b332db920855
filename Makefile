# make accept    a lab cluster, provisioned, benchmarked, judged: clean, then with a slow link
# make test      all tests: unit, C, checks, Ansible, the lab, the report in a browser
# make test-all  these, and the slow ones: the check before a release
# make demo      recorded runs judged, reported and compared; neither root nor a cluster
# make rdma-lab  the lab with RDMA: Slurm, two virtual machines; make rdma-lab-down removes it
# make docs      the web site of docs/ in build/docs; broken links are errors
# make dist      the tarball of benchmarks/ that Spack builds, and its checksum
# make lint format bench deps clean
# Everything pulls in what it needs; LAB_NODES=8 makes a bigger lab.

VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Some machines set it; thousands of short processes would compile the suite once each.
unexport PYTHONDONTWRITEBYTECODE

HOST_PACKAGES := python3-venv gcc libc6-dev git openssh-client iproute2 mmdebstrap \
	netcat-openbsd systemd-container python3-apt
FABRIC_PACKAGES := ibsim-utils infiniband-diags libumad2sim0 opensm
RDMA_LAB_PACKAGES := busybox-static qemu-system-x86
TEST_PACKAGES := libopenmpi-dev openmpi-bin libmpich-dev mpich librdmacm-dev \
	chromium chromium-driver groff-base ethtool pciutils mstflint \
	$(FABRIC_PACKAGES)

# Code that runs by a Python of the system: Ansible's modules by that of the login node (3.8
# is the minimum of ansible-core 2.19), Spack's steps and recipes, and what reads facts, by any
# from 3.6 on (RHEL 8). Jobs run the suite by its own Python. Ruff has the same globs in pyproject.toml.
PYTHON_3_8 := $(shell git ls-files 'playbooks/roles/*/library/*.py' \
	'playbooks/roles/*/module_utils/*.py' ':!playbooks/roles/lab')
PYTHON_3_6 := $(shell git ls-files 'spack-env/repo/*.py') playbooks/roles/suite/files/platforms.py \
	$(addprefix playbooks/roles/spack/files/, describe.py missing.py)

.PHONY: deps deps-test accept test test-lab test-rest test-all demo rdma-lab rdma-lab-down docs lint lint-types lint-others format bench dist clean

deps: $(VENV)/installed
	@tools/system-packages $(HOST_PACKAGES)
deps-test: deps
	@tools/system-packages $(TEST_PACKAGES)

$(VENV)/installed: requirements-dev.txt pyproject.toml
	@python3 -c 'import ensurepip' 2>/dev/null || tools/system-packages python3-venv
	python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

accept: deps
	@seatrial accept

# One process for the lab, which often waits, beside three for the rest, which sometimes do;
# what measures wants the machine for itself. Both name their files: pytest takes seconds to
# look into all.
test: deps-test
	@$(MAKE) --jobs 2 --output-sync --no-print-directory test-lab test-rest
	@pytest -m "measures and not slow" $(shell git grep -l "build: Build\b" tests)
test-lab:
	@pytest -m "lab and not slow" $(shell git grep -l "pytest\.mark\.lab\b" tests)
test-rest:
	pytest --numprocesses 3 --dist loadfile -m "not lab and not measures and not slow"

# Before a release: what takes too long for every change, too
test-all: accept test
	@tools/system-packages $(RDMA_LAB_PACKAGES)
	pytest -m "slow and (lab or measures)"
	pytest --numprocesses 3 --dist loadfile -m "slow and not lab and not measures"
	@seatrial accept --campaign acceptance --repeats 3 --fault-campaign smoke

demo: $(VENV)/installed
	@seatrial demo

rdma-lab: deps
	@tools/system-packages $(RDMA_LAB_PACKAGES)
	ansible-playbook -i inventories/rdma-lab playbooks/lab.yml
	ansible-playbook -i inventories/rdma-lab playbooks/cluster.yml --limit controller
	ansible-playbook -i inventories/rdma-lab playbooks/site.yml
rdma-lab-down:
	@seatrial lab down

docs: $(VENV)/installed
	properdocs build --strict

lint: lint-types lint-others
lint-types: deps
	mypy
lint-others: deps
	ruff check .
	ruff format --check .
	vermin --quiet --violations --target=3.8- $(PYTHON_3_8)
	vermin --quiet --violations --target=3.6- --eval-annotations $(PYTHON_3_6)
	vermin --quiet --violations --target=3.9- playbooks/roles/nightly_agent/files/seatrial-nightly-agent
	lint-imports
	ansible-lint --offline --strict
	shellcheck tools/clean tools/system-packages .ci/run spack-env/debian-links $(shell git ls-files '*.sh')
	clang-format --dry-run --Werror $(shell git ls-files '*.c' '*.h')

format: deps
	ruff check --fix .
	ruff format .
	python tools/readme.py
	clang-format -i $(shell git ls-files '*.c' '*.h')

bench: deps-test
	@python tools/bench.py

dist:
	@python3 tools/dist.py

clean:
	@tools/clean
