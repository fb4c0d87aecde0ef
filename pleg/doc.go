// Package pleg is an agent's eyes: it knows what the runtime holds now, and says when that has changed. The kubelet calls it the pod
// lifecycle event generator.
//
// # Usage
//
//	eyes := pleg.New(runtime, inbox.Put)
//	go eyes.Run(ctx)
//	seen, err := eyes.Observe(ctx, pod.UID, false) // the newest known
//	seen, err = eyes.Observe(ctx, pod.UID, true)   // newer than what the caller has just done
//
// # Guarantees
//
// One method of the runtime owns the truth: InspectPod. Everything else is a hint that leads to an inspection of one pod: an event of
// the runtime, a listing that differs from what is known, a caller who asks for something fresh. So a lost, doubled, late or false hint costs at
// most time, and nothing has to be put in order by a clock: inspections of one pod come one after another, and a fresh answer is one whose inspection began
// after the question.
//
// An event makes what is known of a pod no longer good enough, and is passed on by notify. The inspection is made when somebody observes the pod, or
// after ten seconds if nobody does: a pod that is being started causes an event at each step, and is inspected once, when its starter looks.
//
// Hints gather in a set that is bounded by the pods. A few inspections run at a time; one that hangs makes no other pod wait. A pod whose
// inspection fails is tried again by itself, after one second, then two, up to half a minute.
//
// All that the runtime holds is listed every second or, while a stream of events is up, every minute; in addition each time that the stream comes up
// or breaks. A listing that fails is repeated after a second. So, when the runtime has come to its senses, what is known equals the
// truth within [WithTimeout], a minute and a half and one listing, and within a second while there is no stream and no fault.
//
// The notify func is called for every event, and at least once after every change when the new observation can be read.
// A pod of which the runtime holds nothing is forgotten, after its notice: memory is bounded by the pods that exist.
//
// # What you implement
//
// A [podmill.Lister]. Where it is a [podmill.EventStreamer] too, its stream is used.
//
// # Concurrency
//
// All methods may be called concurrently; notify and the [Observer] are called from several goroutines, for one pod one call after another.
//
// # Shutdown
//
// Run returns when its context has ended and every call of the runtime has returned. Whoever still waits in Observe gets [ErrEnded].
//
// # Observability
//
// [Observer] is told of every change, listing and inspection, and of the stream. Healthy says in the kubelet's words when no listing has
// succeeded for three minutes.
//
// # Testing
//
// Everything runs in virtual time; podmilltest has a runtime in memory and faults to put around it.
package pleg
