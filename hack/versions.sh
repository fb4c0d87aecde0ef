# shellcheck shell=bash disable=SC2034
# Every version that the scripts build or fetch, in one place.

CONTAINERD_VERSION=v2.4.2
RUNC_VERSION=v1.5.3
# With the API server comes the etcd that tools/controlplane/go.mod names.
KUBERNETES_VERSION=v1.37.2
GOLANGCI_LINT_VERSION=v2.15.0
GOVULNCHECK_VERSION=v1.9.0

# What the distribution ships (containerd 1.6, runc 1.1, CNI plugins 1.1 and
# registry 2.8 on Debian 12) is taken as it is and kept until `make distclean`.
