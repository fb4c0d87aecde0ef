package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podmill/podmill"
)

// malformedError says what is wrong with a pull secret, and nothing of what is in it.
type malformedError struct{ problem string }

// Error returns the problem.
func (e *malformedError) Error() string { return e.problem }

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...)}
}

// dockerConfig is the content of a pull secret: credentials by registry, or by a path in one.
type dockerConfig map[string]dockerAuth

type dockerAuth struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"` // base64 of username:password, and wins over both
}

// authsOf reads the credentials of a pull secret, each with the place that it is for as its ServerAddress. No error of it says what is in the
// secret: those of package json do, and go no further.
func authsOf(secret *corev1.Secret) ([]podmill.ImageAuth, error) {
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct {
			Auths dockerConfig `json:"auths"`
		}
		if err := decode(secret, corev1.DockerConfigJsonKey, &file); err != nil {
			return nil, err
		}
		return file.Auths.auths(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeDockercfg:
		var config dockerConfig
		if err := decode(secret, corev1.DockerConfigKey, &config); err != nil {
			return nil, err
		}
		return config.auths(corev1.DockerConfigKey)
	default:
		return nil, malformed("its type %q is not one of pull secrets", secret.Type)
	}
}

func decode(secret *corev1.Secret, key string, into any) error {
	data, ok := secret.Data[key]
	if !ok {
		return malformed("it has no %s", key)
	}
	if json.Unmarshal(data, into) != nil {
		return malformed("%s is malformed", key)
	}
	return nil
}

func (c dockerConfig) auths(key string) (auths []podmill.ImageAuth, err error) {
	for _, place := range slices.Sorted(maps.Keys(c)) {
		entry := c[place]
		if entry.Auth != "" {
			if entry.Username, entry.Password, err = decodeAuth(entry.Auth); err != nil {
				return nil, malformed("%s is malformed: %v", key, err)
			}
		}
		// A credential helper leaves an entry that says nothing. It is no credential.
		if entry.Username != "" || entry.Password != "" {
			auths = append(auths, podmill.ImageAuth{Username: entry.Username, Password: entry.Password, ServerAddress: place})
		}
	}
	return auths, nil
}

// decodeAuth reads base64 of username:password, padded or not.
func decodeAuth(auth string) (username, password string, err error) {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(auth), "="))
	if err != nil {
		return "", "", errors.New("an auth is not base64")
	}
	username, password, ok := strings.Cut(string(decoded), ":")
	if !ok {
		return "", "", errors.New("an auth is not base64 of username:password")
	}
	return username, password, nil
}
