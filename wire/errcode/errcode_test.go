package errcode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

func TestOracleErrorTable(t *testing.T) {
	rows := 0
	oracle.Table(t, "tables/errors.tsv", func(_ int, row map[string]string) {
		n, err := strconv.ParseInt(row["code"], 10, 16)
		require.NoError(t, err)
		c := FromCode(int16(n))
		require.True(t, c.Known(), row["name"])
		require.Equal(t, row["name"], c.Name())
		require.Equal(t, row["retriable"] == "true", c.Retriable(), row["name"])
		require.Equal(t, row["invalidMetadata"] == "true", c.InvalidMetadata(), row["name"])
		require.NotEmpty(t, c.Text(), row["name"])
		rows++
	})
	require.Equal(t, len(entries), rows, "codes that Kafka does not have")
}

func TestNumbersOutsideTheTableAreKept(t *testing.T) {
	for _, n := range []int16{-2, -32768, int16(len(entries)) - 1, 32767} {
		c := FromCode(n)
		require.False(t, c.Known())
		require.False(t, c.Retriable())
		require.False(t, c.InvalidMetadata())
		require.True(t, strings.HasSuffix(c.Name(), strconv.Itoa(int(n))), c.Name())
		require.NotEmpty(t, c.Error())
	}
}

func TestOnlyNoneIsNoError(t *testing.T) {
	require.NoError(t, None.Err())
	require.Error(t, UnknownServerError.Err())
	require.ErrorIs(t, fmt.Errorf("create: %w", TopicAlreadyExists.Err()), TopicAlreadyExists)
	require.NotErrorIs(t, NotController.Err(), NotCoordinator)
}

func ExampleCode() {
	err := fmt.Errorf("topic orders: %w", FromCode(36).Err())
	fmt.Println(err)
	fmt.Println(errors.Is(err, TopicAlreadyExists), FromCode(6).Retriable(), FromCode(0).Err())
	// Output:
	// topic orders: TOPIC_ALREADY_EXISTS (36): the topic exists already
	// true true <nil>
}
