// Package podmill is the kubelet taken apart: the contract between the parts of a node agent.
//
// Each part is a package that stands on its own, and an agent is what you get by composing them. This package holds what passes between
// them: the world as a runtime shows it, what is asked of a runtime, and the four interfaces that an agent's surroundings implement.
// It has no logic and starts nothing.
package podmill
