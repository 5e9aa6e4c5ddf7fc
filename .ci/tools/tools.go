//go:build tools

// Package tools pins the linters that .ci/run uses, apart from the project's own dependencies.
package tools

import _ "honnef.co/go/tools/cmd/staticcheck"
