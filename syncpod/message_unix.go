//go:build unix

package syncpod

import "syscall"

// openFlags make opening a file refuse a link, and not wait for the other end of a FIFO.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
