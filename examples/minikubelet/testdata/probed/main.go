// Command probed is a server to be probed, in a container: over HTTP, TCP and gRPC. Files in a directory say how it answers: it is ready unless there is one called
// unready, and alive unless there is one called dead.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	dir := flag.String("dir", "/state", "directory of the files that say how to answer")
	web := flag.String("http", "", "address to serve /ready and /alive at")
	tcp := flag.String("tcp", "", "address to accept connections at while ready")
	health := flag.String("grpc", "", "address of the gRPC health service; it knows the services ready and alive")
	flag.Parse()
	s := state(*dir)
	switch {
	case *web != "":
		http.HandleFunc("/ready", s.answer("unready"))
		http.HandleFunc("/alive", s.answer("dead"))
		log.Fatal(http.ListenAndServe(*web, nil)) //nolint:gosec // a test's
	case *tcp != "":
		l := listen(*tcp)
		for {
			c, err := l.Accept()
			if err != nil {
				log.Fatal(err)
			}
			_ = c.Close()
		}
	case *health != "":
		server := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, &checker{state: s})
		log.Fatal(server.Serve(listen(*health)))
	}
}

func listen(address string) net.Listener {
	l, err := net.Listen("tcp", address) //nolint:noctx // for ever
	if err != nil {
		log.Fatal(err)
	}
	return l
}

// state is the directory.
type state string

func (s state) has(file string) bool {
	_, err := os.Stat(filepath.Join(string(s), file))
	return err == nil
}

func (s state) answer(trouble string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if s.has(trouble) {
			http.Error(w, "there is a file "+trouble, http.StatusServiceUnavailable)
		}
	}
}

type checker struct {
	grpc_health_v1.UnimplementedHealthServer
	state
}

func (c *checker) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	trouble := map[string]string{"ready": "unready", "alive": "dead"}[r.GetService()]
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
	if c.has(trouble) {
		answer.Status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return answer, nil
}
