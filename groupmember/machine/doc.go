// Package machine decides what a member of a consumer group does.
package machine
