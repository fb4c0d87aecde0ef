// Package podspec is what an API server does to a pod that is created, for pods that never meet one: it fills in defaults and says what is
// wrong. It does the same for the ConfigMaps and Secrets beside them.
//
// # Usage
//
//	podspec.Default(pod)
//	if errs := podspec.Validate(pod); len(errs) > 0 {
//		return errs.ToAggregate()
//	}
//
// A pod from a file goes through [ValidateStatic] too: whatever only an API server can give, it cannot have.
//
// # Guarantees
//
// Defaults and verdicts are those of Kubernetes 1.37 with its features as they are by default, for a node that allows privileged containers:
// the same pods go through both in tools/podspecdiff, tens of thousands of them, and the differences that there are on purpose are a
// table there. The main ones:
//
//   - the path of an error is that of the field in the file, where Kubernetes at times leaves out an index or names another field;
//   - a container that mounts a volume which is invalid itself is not said to mount one that is not there;
//   - of ephemeral containers nothing more is said than that no pod is created with them;
//   - the status is left alone.
//
// Each error says what would be right. Errors come in the same order each time, never hold a Secret's value, and nothing panics,
// whatever the pod holds.
//
// # What you implement
//
// Nothing.
//
// # Concurrency
//
// All is pure functions. Default and DefaultSecret change what they are given.
//
// # Testing
//
// Here, what people get wrong, by tables. In tools/podspecdiff, every rule against the real one: each place of several pods that have
// everything is changed to all that may be wrong there, and pods are made at random.
package podspec
