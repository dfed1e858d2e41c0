// Writes key|line from standard input with acks=all, and prints what a group of two reads: ADDRESS TOPIC COUNT.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	address, topic := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	write(ctx, address, topic)
	members := []*kgo.Client{member(address, topic), member(address, topic)}
	out := bufio.NewWriter(os.Stdout)
	for read := 0; read < count; {
		for _, member := range members {
			poll, stop := context.WithTimeout(ctx, 100*time.Millisecond)
			fetches := member.PollFetches(poll)
			stop()
			check(ctx.Err())
			fetches.EachRecord(func(record *kgo.Record) {
				read++
				fmt.Fprintf(out, "%s\n", record.Value)
			})
		}
	}
	for _, member := range members {
		check(member.CommitUncommittedOffsets(ctx))
		member.Close()
	}
	check(out.Flush())
}

func write(ctx context.Context, address, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.AllowAutoTopicCreation())
	check(err)
	defer client.Close()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		key, line, _ := strings.Cut(lines.Text(), "|")
		record := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(line)}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) { check(err) })
	}
	check(lines.Err())
	check(client.Flush(ctx))
}

func member(address, topic string) *kgo.Client {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumerGroup("franz-go"),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
