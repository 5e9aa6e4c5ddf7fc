// Package txn sends records and consumer offsets in transactions: all of them or none.
package txn
