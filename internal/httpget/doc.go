// Package httpget carries out the HTTPGetAction of a probe or a hook, as the kubelet does: [Request] makes the request of the action and says no
// word on the wire, [Client] sends it.
package httpget
