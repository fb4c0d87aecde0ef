// Package csisanity holds the CSI driver that the tests use to csi-test's sanity suite: what is tested with it is tested with a driver as they should be.
//
// It is a module of its own, for the suite brings its own testing framework.
package csisanity
