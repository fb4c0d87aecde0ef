// Package lifecycle holds the small rules of the life of pods and containers that more than one part needs: which containers a pod
// has and in what order they start, which of them run again after an exit, and which pods are static. Every function is pure.
package lifecycle
