package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseTime reads a time: a date with or without a time of day and a zone (UTC without), milliseconds since 1970, or a
// duration before now, such as -1h.
func parseTime(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	if rest, ago := strings.CutPrefix(s, "-"); ago {
		if d, err := parseDuration(rest); err == nil {
			return now.Add(-d), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: want 2026-01-31T09:00:00Z, 2026-01-31, milliseconds since 1970, or -1h for an hour ago", s)
}

// parseDuration reads Go's durations (1h30m) and, as Kafka's tools take them, those of ISO 8601 in days to seconds (P1DT2H).
func parseDuration(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, nil
	}
	bad := fmt.Errorf("%q is no duration: want 90m, 36h or P1DT2H30M", s)
	rest, ok := strings.CutPrefix(strings.ToUpper(s), "P")
	if !ok || rest == "" {
		return 0, bad
	}
	var sum time.Duration
	date, clock, _ := strings.Cut(rest, "T")
	if days, ok := strings.CutSuffix(date, "D"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, bad
		}
		sum = time.Duration(n) * 24 * time.Hour
	} else if date != "" {
		return 0, bad
	}
	if clock != "" {
		d, err := time.ParseDuration(strings.ToLower(clock)) // hours, minutes and seconds are written alike
		if err != nil || d < 0 {
			return 0, bad
		}
		sum += d
	}
	return sum, nil
}
