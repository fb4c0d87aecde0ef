package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podmill/podmill"
)

// annotationNodeID is on a Node, and has by driver what the node is called there.
const annotationNodeID = "csi.volume.kubernetes.io/nodeid"

// CSI is what the CSI drivers of a node have to do with the API server: package volume/csi's Cluster. It keeps the CSINode, and what the Node says of drivers.
type CSI struct {
	client  *Client
	drivers *table
}

// NewCSI returns what the client's node has to do with CSI.
func NewCSI(client *Client) *CSI { return &CSI{client: client, drivers: newTable(func() {})} }

// Run watches the CSIDrivers until ctx ends; without it none can be told. It returns nil.
func (c *CSI) Run(ctx context.Context) error {
	f := &feed{client: c.client.storage, resource: "csidrivers", example: &storagev1.CSIDriver{}, patience: podPatience, take: c.drivers, failed: c.drivers.failed}
	f.run(ctx)
	return nil
}

// CSIDriver returns a CSIDriver as it was last seen, and an error that is [podmill.ErrNotFound] if there is none.
func (c *CSI) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	if err := c.drivers.wait(ctx); err != nil {
		return nil, fmt.Errorf("CSIDriver %s: %w", name, err)
	}
	driver, ok := c.drivers.get("", name).(*storagev1.CSIDriver)
	if !ok {
		return nil, fmt.Errorf("CSIDriver %s: %w", name, podmill.ErrNotFound)
	}
	return driver, nil
}

// VolumeAttachment asks for a VolumeAttachment; the error is [podmill.ErrNotFound] if there is none.
func (c *CSI) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	attachment := &storagev1.VolumeAttachment{}
	err := c.client.storage.Get().Resource("volumeattachments").Name(name).Do(ctx).Into(attachment)
	if apierrors.IsNotFound(err) {
		err = podmill.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("VolumeAttachment %s: %w", name, err)
	}
	return attachment, nil
}

// ClaimGrown writes into a claim's status that its volume is that large now.
func (c *CSI) ClaimGrown(ctx context.Context, claim *corev1.PersistentVolumeClaim, size resource.Quantity) error {
	over := func(kind corev1.PersistentVolumeClaimConditionType) any {
		return map[string]any{"$patch": "delete", "type": kind}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": claim.UID},
		"status": map[string]any{
			"capacity":                  map[string]any{string(corev1.ResourceStorage): size},
			"allocatedResourceStatuses": map[string]any{string(corev1.ResourceStorage): nil},
			"conditions":                []any{over(corev1.PersistentVolumeClaimResizing), over(corev1.PersistentVolumeClaimFileSystemResizePending)},
		},
	})
	if err == nil {
		err = c.client.core.Patch(types.StrategicMergePatchType).Namespace(claim.Namespace).Resource("persistentvolumeclaims").Name(claim.Name).
			SubResource("status").Body(patch).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("patch status of PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// PublishDrivers puts drivers into the node's CSINode and takes those away that are gone. The Node gets their IDs, and the topology as labels, first: who
// finds a driver finds them. What others have put there stays.
func (c *CSI) PublishDrivers(ctx context.Context, drivers []storagev1.CSINodeDriver, gone []string, topology map[string]string) error {
	nodes := &Nodes{client: c.client}
	node, err := nodes.Node(ctx)
	if err != nil {
		return err
	}
	if change := nodeChange(node, drivers, gone, topology); change != nil {
		if _, err := nodes.patch(ctx, change); err != nil {
			return err
		}
	}
	is := &storagev1.CSINode{}
	err = c.client.storage.Get().Resource("csinodes").Name(node.Name).Do(ctx).Into(is)
	if apierrors.IsNotFound(err) {
		is = &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		}}, Spec: storagev1.CSINodeSpec{Drivers: drivers}}
		return outcome("create", node.Name, c.client.storage.Post().Resource("csinodes").Body(is).Do(ctx).Error())
	}
	if err != nil {
		return outcome("get", node.Name, err)
	}
	for _, next := range csiNodeSteps(is.Spec.Drivers, drivers, gone) {
		is.Spec.Drivers = next
		written := &storagev1.CSINode{}
		if err := c.client.storage.Put().Resource("csinodes").Name(node.Name).Body(is).Do(ctx).Into(written); err != nil {
			return outcome("update", node.Name, err)
		}
		is = written
	}
	return nil
}

func outcome(what, node string, err error) error {
	if err != nil {
		return fmt.Errorf("%s CSINode %s: %w", what, node, err)
	}
	return nil
}

// csiNodeSteps returns what a CSINode has to list, one write after the other, none if it lists it already. What is said of a driver cannot be changed, so that one that has
// become another is taken away first.
func csiNodeSteps(is, drivers []storagev1.CSINodeDriver, gone []string) (steps [][]storagev1.CSINodeDriver) {
	wanted := map[string]storagev1.CSINodeDriver{}
	for _, d := range drivers {
		wanted[d.Name] = d
	}
	kept := []storagev1.CSINodeDriver{}
	replaced := false
	for _, d := range is {
		next, ok := wanted[d.Name]
		switch {
		case ok && equality.Semantic.DeepEqual(d, next):
			kept = append(kept, d)
			delete(wanted, d.Name)
		case ok:
			replaced = true
		case !slices.Contains(gone, d.Name):
			kept = append(kept, d)
		}
	}
	if replaced || len(wanted) == 0 && len(kept) < len(is) {
		steps = append(steps, kept)
	}
	if len(wanted) > 0 {
		next := slices.Clone(kept)
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			next = append(next, wanted[name])
		}
		steps = append(steps, next)
	}
	return steps
}

// nodeChange returns what a Node has to be patched with to say what it is called by its drivers, and where it lies; nil if it says so.
func nodeChange(node *corev1.Node, drivers []storagev1.CSINodeDriver, gone []string, topology map[string]string) map[string]any {
	ids := map[string]string{}
	_ = json.Unmarshal([]byte(node.Annotations[annotationNodeID]), &ids) // what cannot be read is written anew
	if ids == nil {
		ids = map[string]string{}
	}
	before := maps.Clone(ids)
	for _, name := range gone {
		delete(ids, name)
	}
	for _, d := range drivers {
		ids[d.Name] = d.NodeID
	}
	labels := map[string]string{}
	for key, value := range topology {
		if node.Labels[key] != value {
			labels[key] = value
		}
	}
	if len(labels) == 0 && maps.Equal(ids, before) {
		return nil
	}
	var annotation any // none, where it is nil
	if len(ids) > 0 {
		text, err := json.Marshal(ids)
		if err != nil {
			return nil // strings can be encoded
		}
		annotation = string(text)
	}
	return map[string]any{"metadata": map[string]any{"labels": labels, "annotations": map[string]any{annotationNodeID: annotation}}}
}
