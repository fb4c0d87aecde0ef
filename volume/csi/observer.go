package csi

import "time"

// Observer is told of what happens to drivers. A nil func is not called; each returns at once.
type Observer struct {
	// Registered follows each attempt of a driver to register, by the path of its socket. The name is empty where the driver has not told it.
	Registered func(socket, driver string, err error)
	// Gone is told when the socket by which a driver registered has gone, or was replaced.
	Gone func(socket, driver string)
	// Called follows each call of a driver, by the name that the CSI has for it.
	Called func(driver, call string, took time.Duration, err error)
}

func (o Observer) registered(socket, driver string, err error) {
	if o.Registered != nil {
		o.Registered(socket, driver, err)
	}
}

func (o Observer) gone(socket, driver string) {
	if o.Gone != nil {
		o.Gone(socket, driver)
	}
}

func (o Observer) called(driver, call string, took time.Duration, err error) {
	if o.Called != nil {
		o.Called(driver, call, took, err)
	}
}
