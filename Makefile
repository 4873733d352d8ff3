# Each target makes the environment it needs, in .venv, and makes it again after a change of pyproject.toml or constraints.txt.
# Without make: see README.md.

PYTHON  ?= python3
# One worker a core; in a container, a core of its quota.
CORES    = n=$$(env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1); \
  cat /sys/fs/cgroup/cpu.max 2>/dev/null | awk -v n="$$n" '$$1 + 0 && $$1 < n * $$2 { n = int($$1 / $$2) } END { print (n > 1 ? n : 1) }'
WORKERS ?= $(shell $(CORES))
CHAPTER ?=

# Or every kernel and every worker would compile PyTorch, matplotlib and pandas anew: a start would take two and a half times as long.
unexport PYTHONDONTWRITEBYTECODE
# What a shell has set for other work, such as ROS, would bring its packages and its options of pytest along. Lab is the reader's own.
unexport PYTHONHOME PYTHONPATH PYTEST_ADDOPTS PYTEST_PLUGINS

export TORCH

BIN := .venv/bin
ENV := .venv/.stamp

.DEFAULT_GOAL := help
.PHONY: help lab test nightly quick lint book serve handout notebooks runs gpu

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

lab: export PYTHONPATH := $(PYTHONPATH)
lab: $(ENV) ## open the course in JupyterLab
	@$(BIN)/python -m course_utils.studio lab

# One thread each: the workers share the cores, and threads that wait for one another only spin.
# Three instruction sets that a processor may have; a training gives other digits with each.
SETS = default avx2 avx512

test: export OMP_NUM_THREADS = 1
test: lint ## run the tests that protect readers: unit, property, notebook and browser
	$(BIN)/python -m pytest tests notebooks --nbval -n $(WORKERS) --dist loadscope

nightly: export OMP_NUM_THREADS = 1
nightly: lint ## run every test: all pages at all widths in two browsers, numbers to try, a case of each stored run, real weights, three instruction sets
	-$(BIN)/python -c "import course_utils as cu; cu.fetch('smollm2'); cu.fetch('minilm'); cu.fetch('minilm-tokenizer')"
	$(BIN)/python -m pytest tests notebooks --nbval --nightly -n $(WORKERS) --dist loadscope
	for set in $(SETS); do ATEN_CPU_CAPABILITY=$$set MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41 \
	  $(BIN)/python -m pytest notebooks/$(CHAPTER)*.ipynb --nbval -n $(WORKERS) --dist loadscope || exit 1; done

quick: export OMP_NUM_THREADS = 1
quick: lint ## run the tests that need no browser, execute no notebook, and take under a second
	$(BIN)/python -m pytest tests -m "not browser and not notebook and not slow" -n $(WORKERS) --dist loadscope

book: $(ENV) ## build the book into _build/html
	$(BIN)/python -m course_utils.studio.book build

serve: $(ENV) ## show the built book on a local address
	$(BIN)/python -m course_utils.studio.book serve

handout: $(ENV) ## write the notebooks without solutions and outputs into _build/handout; FOR=nbgrader or FOR=otter for exercises that these tools grade
	$(BIN)/python -m course_utils.studio handout $(if $(FOR),--for $(FOR))

notebooks: $(ENV) ## execute notebooks/source into notebooks, and say how long each is; CHAPTER=02 for one
	$(BIN)/python -m course_utils.studio run $(CHAPTER)

runs: $(ENV) ## make the stored runs that are missing; CHAPTER=12 for one
	$(BIN)/python -m course_utils.studio.runs $(CHAPTER)

gpu: $(ENV) ## train the runs at full size on a GPU, and store what they give; CHAPTER=13 for one
	$(BIN)/python -m course_utils.studio.runs --gpu $(CHAPTER)

lint: $(ENV) ## look for mistakes, unformatted code, wrong types, and imports against the order of the rooms
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache
	$(BIN)/mypy --no-error-summary

$(ENV): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "Python is missing: install Python 3.11 to 3.14, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" tools/bootstrap.py
