package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SSLConfig is what the ssl.* properties say. Only PEM stores are read: Java key stores and PKCS#12 need a
// conversion first, and the error says which.
type SSLConfig struct {
	TruststoreType         string   // ssl.truststore.type; PEM is the only one read, empty means PEM
	TruststoreLocation     string   // a PEM file with CA certificates
	TruststoreCertificates string   // the same, inline
	KeystoreType           string   // ssl.keystore.type; likewise
	KeystoreLocation       string   // a PEM file with the client's key and certificate chain
	KeystoreChain          string   // the chain, inline
	KeystoreKey            Secret   // the key, inline
	KeyPassword            Secret   // refused when set: Go reads no encrypted PKCS#8
	Protocols              []string // ssl.enabled.protocols: TLSv1.2, TLSv1.3; empty means both
	CipherSuites           []string // ssl.cipher.suites by their IANA names, for TLS 1.2; empty means Go's choice
	SkipHostCheck          bool     // ssl.endpoint.identification.algorithm set to the empty text
}

// sslError names the key that is at fault.
type sslError struct {
	key string
	err error
}

func (e *sslError) Error() string { return e.err.Error() }
func (e *sslError) Unwrap() error { return e.err }

func sslKey(err error) string {
	var e *sslError
	if errors.As(err, &e) {
		return e.key
	}
	return "ssl"
}

// Build makes the TLS configuration. It reads the files that the locations name.
func (s *SSLConfig) Build() (*tls.Config, error) {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &sslError{key, fmt.Errorf(format, args...)})
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	s.versions(conf, bad)
	s.ciphers(conf, bad)
	s.trust(conf, bad)
	s.identity(conf, bad)
	if s.SkipHostCheck {
		skipHostCheck(conf)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return conf, nil
}

func (s *SSLConfig) versions(conf *tls.Config, bad func(key, format string, args ...any)) {
	conf.MaxVersion = 0
	var least, most uint16
	for _, name := range s.Protocols {
		var v uint16
		switch strings.TrimSpace(name) {
		case "TLSv1.2":
			v = tls.VersionTLS12
		case "TLSv1.3":
			v = tls.VersionTLS13
		default:
			bad("ssl.enabled.protocols", "%q is not supported; TLSv1.2 and TLSv1.3 are", name)
			continue
		}
		if least == 0 || v < least {
			least = v
		}
		most = max(most, v)
	}
	if least != 0 {
		conf.MinVersion, conf.MaxVersion = least, most
	}
}

func (s *SSLConfig) ciphers(conf *tls.Config, bad func(key, format string, args ...any)) {
	for _, name := range s.CipherSuites {
		found := false
		for _, suite := range tls.CipherSuites() {
			if suite.Name == strings.TrimSpace(name) {
				conf.CipherSuites = append(conf.CipherSuites, suite.ID)
				found = true
			}
		}
		if !found {
			bad("ssl.cipher.suites", "%q is not a cipher suite that Go's crypto/tls offers", name)
		}
	}
}

func (s *SSLConfig) trust(conf *tls.Config, bad func(key, format string, args ...any)) {
	text, key := s.TruststoreCertificates, "ssl.truststore.certificates"
	if s.TruststoreLocation != "" {
		key = "ssl.truststore.location"
		data, err := readStore(s.TruststoreLocation, s.TruststoreType)
		if err != nil {
			bad(key, "%w", err)
			return
		}
		text = data
	}
	if text == "" {
		return // the system's roots
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		bad(key, "holds no PEM certificate")
		return
	}
	conf.RootCAs = pool
}

func (s *SSLConfig) identity(conf *tls.Config, bad func(key, format string, args ...any)) {
	chain, key, name := s.KeystoreChain, s.KeystoreKey.Reveal(), "ssl.keystore.key"
	if s.KeystoreLocation != "" {
		name = "ssl.keystore.location"
		data, err := readStore(s.KeystoreLocation, s.KeystoreType)
		if err != nil {
			bad(name, "%w", err)
			return
		}
		chain, key = data, data
	}
	if chain == "" && key == "" {
		return
	}
	if block, _ := pem.Decode([]byte(key)); block != nil && block.Type == "ENCRYPTED PRIVATE KEY" {
		bad(name, "the key is encrypted, which is not supported: decrypt it with openssl pkcs8 -in KEY -out PLAIN, and keep the file private")
		return
	}
	pair, err := tls.X509KeyPair([]byte(chain), []byte(key))
	if err != nil {
		bad(name, "key and certificate chain: %w", err)
		return
	}
	conf.Certificates = []tls.Certificate{pair}
}

func readStore(path, kind string) (string, error) {
	if !strings.EqualFold(kind, "PEM") && kind != "" {
		return "", fmt.Errorf("%s stores are not read; convert it to PEM (keytool -exportcert -rfc, or openssl pkcs12 -in STORE -out store.pem -nodes) and set the type to PEM", kind)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return string(data), nil
}

// skipHostCheck checks the chain but not the name, as Kafka does for an empty endpoint identification algorithm.
func skipHostCheck(conf *tls.Config) {
	roots := conf.RootCAs
	conf.InsecureSkipVerify = true // VerifyConnection takes over the part that is kept
	conf.VerifyConnection = func(state tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(opts)
		return err
	}
}
