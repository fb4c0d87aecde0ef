package syncpod

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mountBelow returns a mount point in or below a directory, empty if there is none. An error means that nobody knows.
func mountBelow(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			return "", fmt.Errorf("mountinfo: %q is no mount", lines.Text())
		}
		if point := unescape(fields[4]); point == real || strings.HasPrefix(point, real+"/") {
			return point, nil
		}
	}
	return "", lines.Err()
}

// unescape undoes the octal escapes of white space and backslashes in mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
