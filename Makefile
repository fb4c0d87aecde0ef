# Everything that is built, fetched or run lives below PODMILL_DIR.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PODMILL_DIR ?= /var/tmp/podmill
export GOWORK := off

.PHONY: help demo test stories unit lint bench microbench fmt up down env clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {gsub(/\$$\$$/, "$$", $$2); printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## run pods from manifests on a private containerd; DEMO_SECONDS=N ends by itself
	@hack/demo.sh

test: ## all tests, on real containerd 2.4 and 1.6, registries, an API server and cgroup v2
	@hack/test.sh

stories: ## kubectl on a whole cluster: scheduler, controllers and a clusterkubelet
	@hack/stories.sh

unit: ## the tests that run anywhere, and what they left out
	@hack/gotest.sh -by-reason -- ./...

lint: ## golangci-lint, go vet, govulncheck, shellcheck
	@hack/lint.sh

bench: ## an agent beside the raw calls, on real containerd: BENCH=-short for 5 minutes
	@hack/bench.sh $(BENCH)

microbench: ## every benchmark of the blocks, beside its baseline
	@go test -run '^$$' -bench . -benchmem ./...

fmt: ## format the Go code
	@gofmt -s -w $$(git ls-files '*.go')

up: ## start what tests need and leave it running: eval "$$(make -s env)" && go test ./...
	@hack/setup.sh test
	@hack/containerd.sh start c2
	@hack/containerd.sh start c1
	@hack/registry.sh start
	@hack/controlplane.sh start

down: ## stop it
	@hack/down.sh

env: ## print the exports that make tests find it
	@hack/env.sh

clean: down ## remove all state but what was built
	@find "$(PODMILL_DIR)" -mindepth 1 -maxdepth 1 ! -name bin -exec rm -rf --one-file-system {} +

distclean: clean ## remove all
	@rm -rf --one-file-system "$(PODMILL_DIR)"
