package apiserver

import (
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
)

// Client speaks to an API server in the name of one node. It may be used concurrently, and by any number of the other types here; it holds
// connections and nothing else.
type Client struct {
	node    string
	core    rest.Interface
	leases  rest.Interface
	nodes   rest.Interface // of the group of RuntimeClasses
	storage rest.Interface

	authentication, authorization rest.Interface
}

// NewClient returns a client of the node of that name. The credentials of config are a node's: the user system:node:<name> in the group
// system:nodes. It connects to nothing yet.
//
// Unless config has a rate limit, requests are not limited here: what a node may ask is the API server's to say (priority and fairness), and
// each of the other types is bounded by what it is for. Protobuf is spoken where config says nothing else.
func NewClient(config *rest.Config, nodeName string) (*Client, error) {
	if nodeName == "" {
		return nil, fmt.Errorf("a client of an API server needs the name of its node")
	}
	shared := rest.CopyConfig(config)
	if shared.QPS == 0 && shared.RateLimiter == nil {
		shared.QPS = -1
	}
	if shared.ContentType == "" {
		shared.ContentType = runtime.ContentTypeProtobuf
		shared.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if shared.UserAgent == "" {
		shared.UserAgent = "podmill"
	}
	// Only what is spoken of is registered: all groups of the API would cost each agent some ten megabytes.
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	utilruntime.Must(authorizationv1.AddToScheme(scheme))
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	utilruntime.Must(nodev1.AddToScheme(scheme))
	utilruntime.Must(storagev1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()

	transport, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, fmt.Errorf("connect to API server %s: %w", shared.Host, err)
	}
	c := &Client{node: nodeName}
	for into, version := range map[*rest.Interface]schema.GroupVersion{
		&c.core: corev1.SchemeGroupVersion, &c.leases: coordinationv1.SchemeGroupVersion, &c.nodes: nodev1.SchemeGroupVersion, &c.storage: storagev1.SchemeGroupVersion,
		&c.authentication: authenticationv1.SchemeGroupVersion, &c.authorization: authorizationv1.SchemeGroupVersion,
	} {
		if *into, err = group(shared, transport, version); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func group(shared *rest.Config, transport *http.Client, version schema.GroupVersion) (rest.Interface, error) {
	config := *shared
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(&config, transport)
	if err != nil {
		return nil, fmt.Errorf("make client of %v at API server %s: %w", version, shared.Host, err)
	}
	return client, nil
}
