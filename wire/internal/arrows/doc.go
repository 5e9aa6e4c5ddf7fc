// Package arrows holds the shape of the house: which room may import which, what the top level is, which modules are
// required, and that machines are pure. It is nothing but tests over import clauses; a new arrow between rooms is a change
// of the table in rules_test.go, in the commit that needs it, with why.
package arrows
