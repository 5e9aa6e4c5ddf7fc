package config

import "strings"

// Suggest returns the defined name nearest to an unknown one, "" when none is near enough to be what was meant.
// Near is at most a third of the letters changed; a name that only lacks a prefix or suffix ("retention" for
// "retention.ms") counts as nearer.
func (d *Definition) Suggest(name string) string {
	if name == "" {
		return ""
	}
	best, bestCost := "", len(name)/3+1
	for _, k := range d.keys {
		if k.Internal {
			continue
		}
		cost := Distance(name, k.Name, bestCost)
		if strings.HasPrefix(k.Name, name+".") || strings.HasSuffix(k.Name, "."+name) {
			cost = 1
		}
		if cost < bestCost {
			best, bestCost = k.Name, cost
		}
	}
	return best
}

// Distance is Levenshtein's: how many bytes must be inserted, deleted or replaced to make one word of the other, cut off at
// limit.
func Distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return min(row[len(b)], limit)
}
