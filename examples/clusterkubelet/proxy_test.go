package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podmill/podmill/internal/testenv/apifault"
)

// throughAProxy has the agent reach the API server through a proxy, on which things can go wrong. To the server the proxy is the node.
func throughAProxy(c *cluster) *apifault.Faults {
	c.t.Helper()
	transport, err := rest.TransportFor(c.NodeConfig)
	if err != nil {
		c.t.Fatal(err)
	}
	server, err := url.Parse(c.NodeConfig.Host)
	if err != nil {
		c.t.Fatal(err)
	}
	faults := apifault.New(transport)
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     faults,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // of what is meant to break
		// An error is a connection that breaks, and no answer of a server.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	proxy.EnableHTTP2 = true
	proxy.StartTLS()
	c.after = append(c.after, func() {
		faults.Cut()
		proxy.CloseClientConnections()
		proxy.Close()
	})
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{
		Server:                   proxy.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}),
	}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.t.Fatal(err)
	}
	c.args = append(c.args, "--kubeconfig", path)
	return faults
}
