// Package sasl holds the mechanisms a client can log in with. A mechanism is handed to client.SASL:
//
//	client.New(client.Seeds("broker:9093"), client.TLS(nil), client.SASL(sasl.PlainUser("alice", sasl.NewSecret("pw"))))
//
// Credentials come from a function that is called at every login, so that they can be rotated without a restart.
// Secrets are of type Secret, which prints as "[redacted]" wherever it is printed.
package sasl
