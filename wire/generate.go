package wire

//go:generate go run ./internal/generate -wire .
