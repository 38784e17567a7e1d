# The few commands of this project. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOG := $(VENV)/install.log
METADATA ?= zk
STATE_STORE ?= hdfs
BOOKIES ?= ours
SEEDS ?= 100
N ?= 100
LIVES ?= 1000
# What is compiled: an environment with older ones of them lacks functions.
CODECS := $(wildcard bookkeeper/codec/native/*.py bookkeeper/codec/native/*.pxd bookkeeper/codec/native/*.h */codec/native.py)
BEGAN := $(shell date +%s.%N)
# Where it is set, every process compiles all it imports anew, and a suite starts thousands of processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install lock check test unit room changed test-all demo demo-heal demo-namenode demo-stream demo-tenants demo-pipeline boards console-pages deploy bench bench-apache bench-streams interop clients kills sink-kills spark-table upgrades sim model corruption fault-table crash-images power-cuts audit sbom fuzz mutants rules proto clean
help: ## list these commands
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

$(STAMP): pyproject.toml setup.py requirements.lock $(CODECS)
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m tests.environment.install $(VENV)
	@$(BIN)/python -c 'from bookkeeper.codec import IMPLEMENTATION as i; print("codec: native" if i == "native" else "codec: pure Python (no C compiler was found; it is slower and does the same)")'
	@touch $@

install: $(STAMP) ## make .venv with everything in it, in the versions of requirements.lock

lock: ## write requirements.lock anew, with the newest versions that pyproject.toml allows; needs uv
	@$(PYTHON) -m tests.environment.locked

check: $(STAMP) ## format, lint, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy bookkeeper journal_manager segments spark_wal pyspark_bookkeeper examples benchmarks tests
	$(BIN)/lint-imports

test: $(STAMP) ## what CI runs: the checks, the tests that prove each promise once, and a sample of the others, which the commit selects [DRAW=7]
	@$(MAKE) --no-print-directory check
	@$(BIN)/python -m tests.suite test

unit: $(STAMP) ## the quick tests within Python: less than a minute
	@$(BIN)/python -m tests.suite unit

room: $(STAMP) ## the tests of one directory or module, within seconds [R=bookkeeper/storage]
	@$(BIN)/python -m tests.suite room $(R)

changed: $(STAMP) ## the tests that what differs from the last commit can break
	@$(BIN)/python -m tests.suite changed

test-all: $(STAMP) ## every test, and what each kind takes (an hour of processor time) [ARGS=--record]
	@$(MAKE) --no-print-directory check
	@$(BIN)/python -m tests.suite all $(ARGS)

demo: $(STAMP) ## a Spark stream survives a lost bookie and killed drivers [METADATA=zk|sqlite STATE_STORE=hdfs|rocksdb BOOKIES=ours|apache SABOTAGE=1]
	@BK_DEMO_BEGAN=$(BEGAN) BK_DEMO_DOWNLOADED_MB=$$($(BIN)/python -m examples.flights.downloaded $(LOG)) \
	    $(BIN)/python -m examples.flights --metadata $(METADATA) --state-store $(STATE_STORE) --bookies $(BOOKIES) $(if $(SABOTAGE),--sabotage)

demo-heal: $(STAMP) ## a rack is lost, six bookies are lost, emptied, filled, retired and damaged while writers run; the cluster heals itself [METADATA=sqlite|zk SABOTAGE=1]
	@$(BIN)/python -m examples.demo_heal --metadata $(if $(filter command% environment%,$(origin METADATA)),$(METADATA),sqlite) $(if $(SABOTAGE),--sabotage)

demo-namenode: $(STAMP) ## a name node of two replicas is killed and paused and loses disks; no acknowledged edit is lost [METADATA=sqlite|zk SABOTAGE=1]
	@$(BIN)/python -m examples.namenode_sim --metadata $(if $(filter command% environment%,$(origin METADATA)),$(METADATA),sqlite) $(if $(SABOTAGE),--sabotage)

demo-stream: $(STAMP) ## flights as a topic: owners, gateways and bookies are lost, and every record is there exactly once [METADATA=sqlite|zk SABOTAGE=1]
	@$(BIN)/python -m examples.demo_stream --metadata $(if $(filter command% environment%,$(origin METADATA)),$(METADATA),sqlite) $(if $(SABOTAGE),--sabotage)

demo-tenants: $(STAMP) ## two tenants share a cluster: one attacks the other's data and share, and gets nothing [METADATA=sqlite|zk SABOTAGE=1]
	@$(BIN)/python -m examples.demo_tenants --metadata $(if $(filter command% environment%,$(origin METADATA)),$(METADATA),sqlite) $(if $(SABOTAGE),--sabotage)

demo-pipeline: $(STAMP) ## flights from stream to stream through Spark: driver, executor, gateway, bookie and owner are killed [METADATA=sqlite|zk SABOTAGE=1]
	@$(BIN)/python -m examples.demo_pipeline --metadata $(if $(filter command% environment%,$(origin METADATA)),$(METADATA),sqlite) $(if $(SABOTAGE),--sabotage)

boards: $(STAMP) ## every query of the board in deploy/ on a live Prometheus, under load; an alarm fires (five minutes) [ARGS="--published DIR"]
	@$(BIN)/python -m tests.boards $(ARGS)

console-pages: $(STAMP) ## the console in Chromium: every page opened and clicked through, in light and dark, narrow and wide; and what hostile pages try [ARGS="--keep DIR"]
	@$(BIN)/python -m tests.console_pages $(ARGS)

deploy: $(STAMP) ## what is in deploy/, checked by its own tools, fetched where they can be had
	@$(BIN)/python -m tests.deploy

bench: $(STAMP) ## the figures of docs/benchmarks.md, as ratios
	$(BIN)/python -m benchmarks

bench-apache: $(STAMP) ## ours and Apache BookKeeper side by side, into docs/benchmarks.md (half an hour) [ARGS=--quick]
	$(BIN)/python -m benchmarks apache --write $(ARGS)

bench-streams: $(STAMP) ## our streams beside Kafka, NATS JetStream and DistributedLog, into docs/benchmarks.md (ten minutes) [ARGS="--rounds 1"]
	$(BIN)/python -m benchmarks rivals --write $(ARGS)

interop: $(STAMP) ## our client and Java's, our bookies and Java's, every operation; needs mvn the first time [ARGS="--only tls"]
	@$(BIN)/python -m tests.interop $(ARGS)

clients: $(STAMP) ## every stock client with files of 1 B to 64 MB while both cores are busy, as a table (a quarter of an hour) [ARGS="--rounds 3"]
	@$(BIN)/python -m tests.clients $(ARGS)

kills: $(STAMP) ## the gateway killed under a running query, N times, and the outcomes [N=100 ARGS="--seed 1 --store rocksdb"]
	@$(BIN)/python -m tests.kills $(N) $(ARGS)

sink-kills: N = 200
sink-kills: $(STAMP) ## drivers killed while they publish batches to a stream, N times, with other rows on repetition [N=200 ARGS="--home DIR"]
	@$(BIN)/python -m tests.sink_kills $(N) $(ARGS)

upgrades: $(STAMP) ## three bookies go from earlier versions to this one and back, one by one, under load [ARGS="--from REVISION"]
	@$(BIN)/python -m tests.upgrades $(ARGS)

spark-table: $(STAMP) ## modes of Structured Streaming over a killed driver, with the gateway and with file:// [ARGS="--part 1/4 --home DIR --lakes PYTHON --write"]
	@$(BIN)/python -m tests.spark_table $(ARGS)

sim: $(STAMP) ## simulate whole clusters, one seed one world [SEEDS=100]
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

model: $(STAMP) ## a bookie and its disk against a dict, with crashes, compaction and undeletion; one seed, one run [LIVES=1000]
	LIVES=$(LIVES) $(BIN)/pytest -q -k against_a_dict tests/bookkeeper/storage/test_model.py tests/bookkeeper/bookie/garbage/test_model.py

corruption: $(STAMP) ## files of a bookie damaged, N times, and the outcomes, into docs/faultlog.md (90 ms each) [N=2000]
	$(BIN)/python -m tests.corruption $(if $(filter command% environment%,$(origin N)),$(N),2000) --write docs/faultlog.md

fault-table: $(STAMP) ## every call of a bookie's disk fails in every way, simulated and in real processes, into docs/faultlog.md
	$(BIN)/python -m tests.fault_table --write docs/faultlog.md

crash-images: $(STAMP) ## what crashes may leave, N times, and whether a start finds everything, into docs/faultlog.md [N=10000]
	$(BIN)/python -m tests.crash_images $(if $(filter command% environment%,$(origin N)),$(N),10000) --write docs/faultlog.md

power-cuts: $(STAMP) ## cut the power of a bookie on loop-mounted ext4 and XFS, N times, into docs/faultlog.md; needs root [N=100 SABOTAGE=1]
	$(BIN)/python -m tests.power_cuts $(N) $(if $(SABOTAGE),--sabotage no-journal-syncs,--write docs/faultlog.md)

audit: $(STAMP) ## known weaknesses of dependencies, secrets in the tree, a security linter; needs a network
	@$(BIN)/python -m tests.environment.audit

sbom: $(STAMP) ## what this version is made of, as CycloneDX, into build/sbom.json
	@mkdir -p build
	@$(BIN)/python -c 'from tests.environment.audit import tool; print(tool("cyclonedx-py"))' | xargs -I{} {} requirements requirements.lock --output-reproducible -o build/sbom.json

fuzz: $(STAMP) ## hostile bytes for every decoder, for an hour, or until one fails [MINUTES=60 ARGS="--seed 7 --only meta-ledger"]
	$(BIN)/python -m tests.fuzz $(or $(MINUTES),60) $(ARGS)

mutants: $(STAMP) ## plant bugs, one at a time: each must be noticed; writes docs/mutants.md [ARGS="--only bookkeeper.ledger"]
	$(BIN)/python -m tests.mutants $(if $(ARGS),$(ARGS),--write)

rules: $(STAMP) ## rule -> tests
	@$(BIN)/python -m tests.architecture.rules

proto: $(STAMP) ## generate the messages of the .proto files anew; a test compares the bytes
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. bookkeeper/wire/bookkeeper.proto bookkeeper/meta/metadata.proto segments/protocol/segments.proto

clean: ## remove the environment and what builds left
	rm -rf $(VENV) build *.egg-info
