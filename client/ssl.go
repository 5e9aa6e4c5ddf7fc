package client

type SSLConfig struct{}

func (s *SSLConfig) Build() (int, error) { return 0, nil }
func sslKey(error) string                { return "" }
