// Package machine is what the example agents have in common: the flags that each of them has, and what they ask of the machine they run on.
package machine
