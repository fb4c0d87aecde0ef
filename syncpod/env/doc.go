// Package env works out what a container's environment, command and arguments are.
//
// # Usage
//
//	vars, err := env.Resolve(env.Input{Pod: pod, Container: c, ConfigMap: ..., Secret: ...})
//	command, args := env.Command(c, vars)
//
// # Guarantees
//
// Everything is pure: the same input gives the same list in the same order. Those of Services come first, then those of envFrom, a later source over
// an earlier one, and those of env over all of them. $(NAME) in a value, a command or an argument stands for a variable that was
// defined before; $$ is a plain $; a reference to what is not defined stays as it is written. Values that come from an
// object or a field are not expanded. An object is asked for once, so that all its keys are of one version.
//
// A variable can also stand in a file that an init container has left in a volume (KEP-3721); its syntax is that of the kubelet, a narrow one.
//
// What a container cannot start without is a [podmill.ReasonError] with the reason CreateContainerConfigError, which names
// the variable, the object and the key, and never a value.
//
// Every key of an object in envFrom is a variable, whatever a shell thinks of its name (KEP-4369).
//
// # What you implement
//
// The functions of [Input] that return objects.
//
// # Concurrency
//
// There is no state.
package env
