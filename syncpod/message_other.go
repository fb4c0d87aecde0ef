//go:build !unix

package syncpod

const openFlags = 0
