//go:build !race

package agent_test

// underRace says that the race detector is on.
const underRace = false
