package hostdir

import (
	"errors"
	"fmt"
)

// ErrOutside says that a path leads out of the volume that it should lie in.
var ErrOutside = errors.New("it leads out of the volume")

// ErrNoParts says that parts of directories cannot be mounted.
var ErrNoParts = fmt.Errorf("mounting a part of a volume needs Linux: %w", errors.ErrUnsupported)
