package consumer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseISODuration reads what java.time.Duration.parse reads, PnDTnHnMn.nS, as auto.offset.reset has it, as far as a
// time.Duration reaches (292 years). Negative durations are refused, as Kafka refuses them there.
func parseISODuration(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not an ISO 8601 duration such as P3D or PT1H30M", text)
	rest, ok := strings.CutPrefix(strings.ToUpper(text), "P")
	if !ok || rest == "" {
		return 0, bad
	}
	total, inTime, some := 0.0, false, false
	order := "DTHMS"
	for rest != "" {
		if rest[0] == 'T' {
			if inTime || len(rest) == 1 {
				return 0, bad
			}
			inTime, rest, order = true, rest[1:], "HMS"
			continue
		}
		n := strings.IndexAny(rest, "DHMS")
		if n <= 0 {
			return 0, bad
		}
		unit := rest[n]
		at := strings.IndexByte(order, unit)
		value, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil || at < 0 || inTime == (unit == 'D') || strings.ContainsAny(rest[:n], "EXP_NI+-") || unit != 'S' && strings.Contains(rest[:n], ".") {
			return 0, bad
		}
		order = order[at+1:]
		total += value * map[byte]float64{'D': 86400, 'H': 3600, 'M': 60, 'S': 1}[unit]
		rest, some = rest[n+1:], true
	}
	if !some {
		return 0, bad
	}
	if total >= math.MaxInt64/float64(time.Second) {
		return 0, fmt.Errorf("%q is longer than 292 years", text)
	}
	return time.Duration(total * float64(time.Second)), nil
}
