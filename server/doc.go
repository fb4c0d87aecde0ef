// Package server is a first part of the kubelet's HTTP API: what people and tools ask a running agent.
//
// # Usage
//
// [New] returns a handler for the caller's mux or server. By itself it checks nobody's rights: serve it where only those who may can connect, such as on a unix
// socket that only its owner can open, or put [Guard] before it:
//
//	s := &http.Server{Handler: server.Guard(nodeName, reviewer, server.New(agent)), TLSConfig: &tls.Config{
//		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, ...}}
//
//	GET  /healthz
//	GET  /pods                                            a v1 PodList with statuses
//	GET  /containerLogs/{namespace}/{pod}/{container}      follow, previous, tailLines, sinceSeconds, sinceTime, timestamps, limitBytes
//	POST /exec/{namespace}/{pod}/{container}               command, input, output, error, tty; GET for WebSockets
//	POST /run/{namespace}/{pod}/{container}?cmd=...        runs a command; cmd is repeated for each of its words
//
// # Guarantees
//
// An agent that has not heard of all its sources answers /pods with 503, never with a part of the list. A log is read in constant
// memory. Streams of a command are the runtime's own, to which the client is joined; credentials do not reach it, and it cannot send the client elsewhere.
// Who is not known is answered before anything is read, written or kept. Certificates that are replaced are used from the next connection on.
//
// # What you implement
//
// [Backend] and, for the streams of commands, [Streamer]; package agent does. For Guard a [Reviewer]; package apiserver has one.
//
// # Concurrency and shutdown
//
// Handlers end when their request's context does.
package server
