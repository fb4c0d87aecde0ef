package podmill

import (
	corev1 "k8s.io/api/core/v1"
)

// SandboxSpec is a sandbox to run: the pod in Kubernetes' own words, and what the agent had to resolve. What is resolved here
// wins over the pod's own field; everything else (network, PID and IPC namespaces, ports, sysctls, security context,
// overhead) is read from the pod. A spec is read-only once it was handed over.
type SandboxSpec struct {
	Pod     *corev1.Pod
	Attempt uint32
	// Hostname is at most 63 characters, 64 where the pod gives a name of its own, and empty for a pod in the host's network.
	Hostname string
	// Domain is what the pod's name ends in for its peers, such as db.shop.svc.cluster.local; empty if it has no subdomain. Whoever writes its
	// /etc/hosts has to know.
	Domain string
	// DNS is the resolv.conf of the pod; nil leaves the runtime's default.
	DNS *DNS
	// LogDirectory is the absolute directory below which [ContainerSpec.LogPath] lies.
	LogDirectory string
	// CgroupParent is the pod's cgroup in the syntax of the runtime's cgroup driver; empty leaves it to the runtime.
	CgroupParent   string
	RuntimeHandler string
	// IDMappings gives the pod a user namespace of its own; nil shares the host's.
	IDMappings *IDMappings
	// Labels and Annotations come back in [Sandbox] as they are.
	Labels      map[string]string
	Annotations map[string]string
}

// ContainerSpec is a container to create. As in [SandboxSpec], what is resolved here wins over the container's own field: a runtime
// runs Command, Args, Env, WorkingDir and Image of the spec, never those of the Container. Security context, resources, lifecycle,
// ports, stdin and tty are read from the Container.
type ContainerSpec struct {
	Sandbox   *SandboxSpec // of the sandbox that it runs in
	SandboxID string
	// TargetID is the container whose processes this one shares, empty if none.
	TargetID  string
	Container *corev1.Container
	Attempt   uint32
	// Image is what [ImageStore.PullImage] or [Image].ID gave: it is here, and it is exactly the one to run.
	Image string
	// Command replaces the image's entrypoint, Args its arguments; both are expanded, and each that is empty is the
	// image's, but for Args where Command is set.
	Command    []string
	Args       []string
	WorkingDir string
	Env        []EnvVar
	Mounts     []Mount
	// Devices are device nodes of the host. CDIDevices are names such as vendor.com/class=name, of which the runtime knows what belongs to them (CDI).
	Devices    []Device
	CDIDevices []string
	// User is who the container runs as; nil is the image's own user.
	User *User
	// OOMScoreAdj is the kernel's bias when memory is short, -1000 (never) to 1000 (first).
	OOMScoreAdj int64
	// LogPath is relative to the sandbox's LogDirectory.
	LogPath      string
	CgroupParent string
	// Labels and Annotations come back in [Container] as they are.
	Labels      map[string]string
	Annotations map[string]string
}

// DNS is the content of a resolv.conf.
type DNS struct {
	Servers  []string
	Searches []string
	Options  []string
}

// EnvVar is one variable of a container's environment; a later one of the same name wins.
type EnvVar struct {
	Name  string
	Value string
}

// User is the user and group that a container runs as. Where UID is nil, Name is looked up in the image.
type User struct {
	UID  *int64
	GID  *int64
	Name string
}

// Mount is something that a container sees at a path: a file or directory of the host or, where HostPath is empty, an image.
type Mount struct {
	ContainerPath string
	HostPath      string
	Image         string
	ImageSubPath  string
	ReadOnly      bool
	// RecursiveReadOnly is how far a mount that is read-only is so for what is mounted below it: IfPossible leaves it to the runtime, which refuses Enabled where it
	// cannot do it. Empty means Disabled.
	RecursiveReadOnly corev1.RecursiveReadOnlyMode
	SELinuxRelabel    bool
	Propagation       corev1.MountPropagationMode // empty means None
	// Options are of noexec, nodev and nosuid.
	Options    []string
	IDMappings *IDMappings
}

// Device is a device node of the host that a container has at a path.
type Device struct {
	ContainerPath string
	HostPath      string
	Permissions   string // of rwm: to read, to write, to make the node
}

// DeviceAllotment is what a container is given of the devices that it asks for, as a device plugin hands it over.
type DeviceAllotment struct {
	Devices     []Device
	CDIDevices  []string
	Mounts      []Mount
	Env         []EnvVar // the container's own wins
	Annotations map[string]string
}

// IDMappings maps user and group IDs of a user namespace to those of the host.
type IDMappings struct {
	UIDs []IDMapping
	GIDs []IDMapping
}

// IDMapping maps Length IDs from Container on to Length IDs from Host on.
type IDMapping struct {
	Container uint32
	Host      uint32
	Length    uint32
}

// ImagePull asks for an image.
type ImagePull struct {
	Image          string
	Auth           *ImageAuth   // nil pulls without credentials
	Sandbox        *SandboxSpec // for whom it is; it may not have been run yet, and nil is for nobody in particular
	RuntimeHandler string
}

// ImageAuth is one credential for a registry. Printed, it does not tell its parts.
type ImageAuth struct {
	Username      string
	Password      string
	Auth          string // base64 of username:password
	ServerAddress string
	IdentityToken string
	RegistryToken string
}

// String tells the server only, so that a credential that meets a log or an error stays one. With some registries the user name
// is as secret as the password.
func (a ImageAuth) String() string { return "credentials for " + a.ServerAddress }

// GoString is String: %#v does not tell the secret parts either.
func (a ImageAuth) GoString() string { return a.String() }
