// Package podspecdiff holds podspec to what Kubernetes itself does: the same pods go through both, and defaults, verdicts and the
// fields that are complained of must be the same, but for the differences that differences_test.go lists.
//
// It is a module of its own, for Kubernetes takes minutes to compile.
package podspecdiff
