// Package lifecycle holds the small rules of a container's life that more than one part needs: which containers a pod
// has and in what order they start, and which of them run again after an exit. Every function is pure.
package lifecycle
