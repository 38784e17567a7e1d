// A load generator on NATS's own client. It obeys one-line JSON commands on its standard input; each is answered with
// one line. Its twins are Rival.java and load.py: the same commands, the same shape of load.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type command struct {
	Op, Topic             string
	Window, Size, Records int
	Rate                  int
	Seconds               float64
	Kill                  int
}

type answer map[string]any

func main() {
	connection, err := nats.Connect(os.Args[1], nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		c := command{Size: 1024, Window: 1}
		said := answer{}
		if err == nil {
			err = json.Unmarshal(lines.Bytes(), &c)
		}
		if err == nil {
			said, err = obey(connection, c)
		}
		if err != nil {
			said = answer{"error": err.Error()}
			err = nil
		}
		text, _ := json.Marshal(said)
		fmt.Println(string(text))
	}
}

func obey(connection *nats.Conn, c command) (answer, error) {
	if c.Op == "hello" {
		return answer{"pid": os.Getpid()}, nil
	}
	js, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(c.Window+1))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	stream, err := create(ctx, js, c.Topic)
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, js, c); err != nil {
		return nil, err
	}
	switch c.Op {
	case "append":
		if _, err := appendAll(ctx, js, c, time.Second); err != nil { // its own warm-up
			return nil, err
		}
		began := time.Now()
		spans, err := appendAll(ctx, js, c, time.Duration(c.Seconds*float64(time.Second)))
		if err != nil {
			return nil, err
		}
		said := percentiles(spans)
		said["per_s"] = float64(len(spans)) / time.Since(began).Seconds()
		return said, nil
	case "catch_up":
		return catchUp(ctx, js, c)
	case "end_to_end":
		return endToEnd(ctx, js, c)
	case "leader":
		info, err := stream.Info(ctx)
		if err != nil {
			return nil, err
		}
		return answer{"leader": info.Cluster.Leader}, nil
	case "failover":
		return failover(ctx, js, c)
	}
	return nil, fmt.Errorf("unknown command %q", c.Op)
}

func payload(c command) []byte {
	payload := make([]byte, c.Size)
	for i := range payload {
		payload[i] = byte(i*7919 + i/251)
	}
	return payload
}

// appendAll appends for a time, so many in flight, waits for all, and returns how long each took.
func appendAll(ctx context.Context, js jetstream.JetStream, c command, lasts time.Duration) ([]time.Duration, error) {
	body, spans := payload(c), []time.Duration{}
	until := time.Now().Add(lasts)
	if c.Window == 1 {
		for time.Now().Before(until) {
			began := time.Now()
			if _, err := js.Publish(ctx, c.Topic, body); err != nil {
				return nil, err
			}
			spans = append(spans, time.Since(began))
		}
		return spans, nil
	}
	type flight struct {
		began time.Time
		ack   jetstream.PubAckFuture
	}
	flights, failed := make(chan flight, c.Window-1), atomic.Value{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for each := range flights {
			select {
			case <-each.ack.Ok():
				spans = append(spans, time.Since(each.began))
			case err := <-each.ack.Err():
				failed.Store(err)
			}
		}
	}()
	for time.Now().Before(until) && failed.Load() == nil {
		began := time.Now()
		ack, err := js.PublishAsync(c.Topic, body)
		if err != nil {
			failed.Store(err)
			break
		}
		flights <- flight{began, ack}
	}
	close(flights)
	<-done
	if err, ok := failed.Load().(error); ok {
		return nil, err
	}
	return spans, nil
}

func percentiles(spans []time.Duration) answer {
	sort.Slice(spans, func(a, b int) bool { return spans[a] < spans[b] })
	at := func(share float64) float64 { return spans[int(float64(len(spans))*share)].Seconds() * 1e3 }
	return answer{"p50_ms": at(0.5), "p99_ms": at(0.99)}
}

// first is the number of the first record that is read: the one before it is that of settle.
const first = 2

func follow(ctx context.Context, js jetstream.JetStream, topic string, each func([]byte) bool) error {
	behind := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first}
	consumer, err := js.OrderedConsumer(ctx, topic, behind)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(5000))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		message, err := messages.Next()
		if err != nil {
			return err
		}
		if each(message.Data()) {
			return nil
		}
	}
}

// catchUp reads a topic that is written before, twice; the second time counts.
func catchUp(ctx context.Context, js jetstream.JetStream, c command) (answer, error) {
	body := payload(c)
	for sent := 0; sent < c.Records; sent++ {
		if _, err := js.PublishAsync(c.Topic, body); err != nil {
			return nil, err
		}
	}
	<-js.PublishAsyncComplete()
	wall := 0.0
	for round := 0; round < 2; round++ {
		began, seen := time.Now(), 0
		err := follow(ctx, js, c.Topic, func([]byte) bool { seen++; return seen >= c.Records })
		if err != nil {
			return nil, err
		}
		wall = time.Since(began).Seconds()
	}
	return answer{"per_s": float64(c.Records) / wall}, nil
}

// endToEnd appends by schedule; a record's latency counts from the time at which it was due.
func endToEnd(ctx context.Context, js jetstream.JetStream, c command) (answer, error) {
	records := c.Rate + int(float64(c.Rate)*c.Seconds)
	spans, done := make([]time.Duration, 0, records), make(chan error, 1)
	epoch := time.Now()
	go func() {
		done <- follow(ctx, js, c.Topic, func(body []byte) bool {
			spans = append(spans, time.Since(epoch)-time.Duration(binary.BigEndian.Uint64(body)))
			return len(spans) >= records
		})
	}()
	began := time.Since(epoch) + 500*time.Millisecond
	for i := 0; i < records; i++ {
		due := began + time.Duration(i)*time.Second/time.Duration(c.Rate)
		time.Sleep(due - time.Since(epoch))
		body := payload(c)
		binary.BigEndian.PutUint64(body, uint64(due))
		if _, err := js.PublishAsync(c.Topic, body); err != nil {
			return nil, err
		}
	}
	if err := <-done; err != nil {
		return nil, err
	}
	return percentiles(spans[c.Rate:]), nil
}

// create makes the stream, as soon as the servers have a leader: what is asked before is not answered.
func create(ctx context.Context, js jetstream.JetStream, topic string) (jetstream.Stream, error) {
	config := jetstream.StreamConfig{
		Name: topic, Subjects: []string{topic}, Replicas: 3, Storage: jetstream.FileStorage,
	}
	for {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		stream, err := js.CreateOrUpdateStream(short, config)
		cancel()
		if err == nil || ctx.Err() != nil {
			return stream, err
		}
	}
}

// settle waits until a new stream takes records: before it has a leader, they are lost without an answer.
func settle(ctx context.Context, js jetstream.JetStream, c command) error {
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		_, err := js.Publish(short, c.Topic, payload(c))
		cancel()
		if err == nil {
			return nil
		}
	}
	return ctx.Err()
}

// failover appends one at a time and kills a process; seconds from then to the next acknowledgement.
func failover(ctx context.Context, js jetstream.JetStream, c command) (answer, error) {
	if _, err := appendAll(ctx, js, c, 2*time.Second); err != nil {
		return nil, err
	}
	if err := syscall.Kill(c.Kill, syscall.SIGKILL); err != nil {
		return nil, err
	}
	killed, body := time.Now(), payload(c)
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		_, err := js.Publish(short, c.Topic, body)
		cancel()
		if err == nil {
			return answer{"seconds": time.Since(killed).Seconds()}, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, ctx.Err()
}
