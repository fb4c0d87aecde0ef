// Command cri does the two things that the scripts ask of a container runtime:
//
//	cri wait ENDPOINT [IMAGE...]   until it is ready and knows the images
//	cri purge ENDPOINT             stop and remove every pod
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cri:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: cri wait ENDPOINT [IMAGE...] | cri purge ENDPOINT")
	}
	conn, err := grpc.NewClient(args[1], grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second}))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch args[0] {
	case "wait":
		return wait(ctx, conn, args[2:])
	case "purge":
		return purge(ctx, cri.NewRuntimeServiceClient(conn))
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// wait polls: a runtime that is still starting answers with errors of all kinds.
func wait(ctx context.Context, conn *grpc.ClientConn, images []string) error {
	for {
		err := ready(ctx, conn, images)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ready(ctx context.Context, conn *grpc.ClientConn, images []string) error {
	// A connection refused now is no reason to back off: the socket comes any moment.
	conn.ResetConnectBackoff()
	status, err := cri.NewRuntimeServiceClient(conn).Status(ctx, &cri.StatusRequest{})
	if err != nil {
		return err
	}
	for _, c := range status.GetStatus().GetConditions() {
		if (c.GetType() == "RuntimeReady" || c.GetType() == "NetworkReady") && !c.GetStatus() {
			return fmt.Errorf("%s is false: %s: %s", c.GetType(), c.GetReason(), c.GetMessage())
		}
	}
	for _, i := range images {
		r, err := cri.NewImageServiceClient(conn).ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: i}})
		if err != nil {
			return err
		}
		if r.GetImage() == nil {
			return fmt.Errorf("image %s is not there", i)
		}
	}
	return nil
}

// purge takes all pods down at a time: one that hangs delays no other.
func purge(ctx context.Context, rt cri.RuntimeServiceClient) error {
	list, err := rt.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	errs := make([]error, len(list.GetItems()))
	var wg sync.WaitGroup
	for i, pod := range list.GetItems() {
		wg.Go(func() {
			if _, err := rt.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
				errs[i] = fmt.Errorf("stop pod %s: %w", pod.GetId(), err)
				return
			}
			if _, err := rt.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
				errs[i] = fmt.Errorf("remove pod %s: %w", pod.GetId(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
