package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// ControlPlane is a kube-apiserver with a node's rights as in a cluster (Node,RBAC and NodeRestriction), without a scheduler and without controllers: a
// pod has to name its node, and a namespace has no service account. Other tests use it at the same time: take a namespace and node names of your own.
type ControlPlane struct {
	Kubeconfig string // of the administrator
	Whole      bool   // it does have a scheduler and controllers
	dir        string
}

// APIServer returns the control plane that runs.
func APIServer(t testing.TB) ControlPlane {
	t.Helper()
	path := need(t, "an API server", "PODMILL_TEST_KUBECONFIG")
	return ControlPlane{Kubeconfig: path, dir: filepath.Dir(path)}
}

// Cluster returns a control plane that is whole, and the path of a kubectl.
func Cluster(t testing.TB) (plane ControlPlane, kubectl string) {
	t.Helper()
	kubectl = os.Getenv("PODMILL_TEST_KUBECTL")
	path := os.Getenv("PODMILL_TEST_CLUSTER_KUBECONFIG")
	if path == "" || kubectl == "" {
		t.Skip("needs a whole cluster (PODMILL_TEST_CLUSTER_KUBECONFIG or PODMILL_TEST_KUBECTL is not set): run `make stories`")
	}
	return ControlPlane{Kubeconfig: path, Whole: true, dir: filepath.Dir(path)}, kubectl
}

// ClientCertificate returns the files of the certificate by which the API server shows itself to nodes: it, its key, and its authority.
func (c ControlPlane) ClientCertificate() (certificate, key, authority string) {
	pki := filepath.Join(c.dir, "pki")
	return filepath.Join(pki, "client.crt"), filepath.Join(pki, "client.key"), filepath.Join(pki, "ca.crt")
}

// NodeKubeconfig writes a kubeconfig with the credentials of a node of that name, and returns its path.
func (c ControlPlane) NodeKubeconfig(t testing.TB, node string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.writeNode(path, node); err != nil {
		t.Fatalf("make credentials of node %s: %v", node, err)
	}
	return path
}

// writeNode writes the administrator's kubeconfig with a node's certificate in place of the token.
func (c ControlPlane) writeNode(path, node string) error {
	data, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		return err
	}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return err
	}
	cert, key, err := c.issue("system:node:"+node, "system:nodes")
	if err != nil {
		return err
	}
	config["users"] = []any{map[string]any{"name": "admin", "user": map[string]any{
		"client-certificate-data": base64.StdEncoding.EncodeToString(cert), "client-key-data": base64.StdEncoding.EncodeToString(key),
	}}}
	if data, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// issue makes a client certificate of a user in a group.
func (c ControlPlane) issue(user, group string) (cert, key []byte, err error) {
	authority, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "pki", "ca.crt"), filepath.Join(c.dir, "pki", "ca.key"))
	if err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: user, Organization: []string{group}},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &private.PublicKey, authority.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

// UniqueName returns a name that no other test has, for a node or a namespace.
func UniqueName(t testing.TB) string {
	t.Helper()
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name()))
	return strings.Trim(name[max(0, len(name)-30):], "-") + fmt.Sprintf("-%d-%x", os.Getpid(), time.Now().UnixNano()&0xffffff)
}
