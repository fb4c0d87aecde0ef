//go:build !linux

package volume

import "testing"

func owner(t testing.TB, _ string) string      { t.Skip("needs Linux"); return "" }
func fileSystem(t testing.TB, _ string) string { t.Skip("needs Linux"); return "" }
func bind(t testing.TB, _, _ string)           { t.Skip("needs Linux") }
