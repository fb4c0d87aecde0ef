// Package lifecycle holds the small rules of a container's life that more than one part needs: which containers a pod
// has and in what order they start, which of them run again after an exit, and which of the three classes of service a pod is in.
// Every function is pure.
package lifecycle
