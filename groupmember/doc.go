// Package groupmember is membership in consumer groups, without fetching.
package groupmember
