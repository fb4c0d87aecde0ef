package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/podmill/podmill/examples/internal/machine"
)

// config is what the flags say. They have the kubelet's names and mean the same.
type config struct {
	machine.Flags

	manifestURL string
	headers     http.Header
	period      time.Duration
	kubeconfig  string
}

func parseFlags(args []string, errOut io.Writer) (*config, error) {
	c := &config{headers: http.Header{}}
	flags := flag.NewFlagSet("edge", flag.ContinueOnError)
	flags.SetOutput(errOut)
	c.Define(flags)
	flags.StringVar(&c.manifestURL, "manifest-url", "", "the `URL` of the manifest of the pods to run")
	flags.Func("manifest-url-header", "`headers` to ask for it with, as a:hello,b:again", c.parseHeaders)
	flags.DurationVar(&c.period, "http-check-frequency", 20*time.Second, "how often to ask for it")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "the `file` that says where the API server is that has the pods to run, and who this node is there")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if (c.manifestURL == "") == (c.kubeconfig == "") {
		return nil, errors.New("pods come from one place: give --manifest-url or --kubeconfig")
	}
	return c, c.Complete(flags)
}

func (c *config) parseHeaders(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, ":")
		if !ok || name == "" {
			return fmt.Errorf("%q is no header: give NAME:VALUE", pair)
		}
		c.headers.Add(name, value)
	}
	return nil
}
