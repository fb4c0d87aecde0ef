// Package server is a first part of the kubelet's HTTP API: what people and tools ask a running agent.
//
// # Usage
//
// [New] returns a handler for the caller's mux or server. It checks nobody's rights: serve it where only those who may can connect, such as on a unix
// socket that only its owner can open.
//
//	GET  /healthz
//	GET  /pods                                            a v1 PodList with statuses
//	GET  /containerLogs/{namespace}/{pod}/{container}      follow, previous, tailLines, sinceSeconds, timestamps, limitBytes
//	POST /run/{namespace}/{pod}/{container}?cmd=...        runs a command; cmd is repeated for each of its words
//
// # Guarantees
//
// An agent that has not heard of all its sources answers /pods with 503, never with a part of the list. A log is read in constant
// memory.
//
// # What you implement
//
// [Backend]; package agent does.
//
// # Concurrency and shutdown
//
// Handlers end when their request's context does.
package server
