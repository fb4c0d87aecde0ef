// Package image makes sure that a container's image is here before the container is created: pull policy, pull secrets, one pull for
// all who wait for the same, and back-off.
//
// # Usage
//
//	p := image.New(runtime, image.WithSecrets(secrets), image.WithEvents(events))
//	auths, err := p.PullSecrets(ctx, pod)
//	img, err := p.EnsureImage(ctx, pod, container, sandbox, auths)
//
// img.ID is what to create the container from.
//
// # Guarantees
//
// An image that is here and need not be pulled costs one InspectImage. A pull that fails is tried again after 10 s, 20 s and so on up to
// 300 s, counted for each pod and image: another pod, or the same one under a new UID, pulls at once. Pods that ask at a time for the same
// image with the same credentials share one call of the runtime, and whoever gives up leaves it to the others.
// Credentials are tried from the most specific to the least, as the kubelet matches them, and then none. No credential is ever
// in a log, an event or an error.
//
// # What you implement
//
// A [Store], which every [podmill.Runtime] is, and [podmill.Secrets] where pods have pull secrets. Errors of a store are shown to people as
// they are.
//
// # Concurrency
//
// Everything may be called concurrently.
//
// # Shutdown
//
// Nothing runs by itself. A pull ends when the last of those who wait for it gives up.
//
// # Observability
//
// Events and the reasons of errors are the kubelet's: Pulling, Pulled, BackOff, Failed, InspectFailed, ErrImageNeverPull,
// FailedToRetrieveImagePullSecret. [Observer] is told of every pull.
//
// # Testing
//
// The policy, the matching of credentials and the back-off are pure. The puller runs in virtual time. podmilltest has a runtime in memory with a
// registry that fails on demand.
package image
