import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * A load generator on a log's own client. It obeys one-line JSON commands on its standard input; each is answered with
 * one line. Its twins are {@code nats/main.go} and {@code load.py}: the same commands, the same shape of load. Its
 * arguments are the class of the log, and where the log is.
 */
public final class Rival {
    /** A log of one kind. {@code window} is how many appends will be in flight: how to batch is the log's business. */
    interface Log {
        void open(String topic, int window) throws Exception;

        /** {@code done} gets null, or what went wrong. From any thread. */
        void append(byte[] payload, Consumer<Throwable> done);

        /** Hands every record since the beginning to {@code each} until it says that this is enough. */
        void read(java.util.function.Predicate<byte[]> each) throws Exception;

        /** The name of the server that owns the topic. */
        String leader() throws Exception;

        void close() throws Exception;
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final SplittableRandom RANDOM = new SplittableRandom(1);

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = in.readLine()) != null) {
            ObjectNode answer;
            try {
                answer = obey(JSON.readTree(line), args);
            } catch (Throwable error) {
                error.printStackTrace();
                answer = JSON.createObjectNode().put("error", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        System.exit(0);
    }

    private static ObjectNode obey(JsonNode c, String[] args) throws Exception {
        if (c.get("op").asText().equals("hello")) {
            return JSON.createObjectNode().put("pid", ProcessHandle.current().pid());
        }
        Log log = (Log) Class.forName(args[0]).getDeclaredConstructor(String.class).newInstance(args[1]);
        log.open(c.get("topic").asText(), c.path("window").asInt(1));
        try {
            switch (c.get("op").asText()) {
                case "append":
                    append(log, c, 1.0); // its own warm-up
                    return append(log, c, c.get("seconds").asDouble());
                case "catch_up":
                    return catchUp(log, c);
                case "end_to_end":
                    return endToEnd(log, c);
                case "leader":
                    appendAll(log, c, System.nanoTime() + 500_000_000L);
                    return JSON.createObjectNode().put("leader", log.leader());
                case "failover":
                    return failover(log, c);
                default:
                    throw new IllegalArgumentException("unknown command " + c);
            }
        } finally {
            log.close();
        }
    }

    private static byte[] payload(JsonNode c) {
        byte[] payload = new byte[c.path("size").asInt(1024)];
        RANDOM.nextBytes(payload);
        return payload;
    }

    private static ObjectNode append(Log log, JsonNode c, double seconds) throws Exception {
        long began = System.nanoTime();
        long[] spans = appendAll(log, c, began + (long) (seconds * 1e9));
        double wall = (System.nanoTime() - began) / 1e9;
        return percentiles(spans).put("per_s", spans.length / wall);
    }

    /** Appends until a time, {@code window} at a time; waits for all; the nanoseconds of each. */
    private static long[] appendAll(Log log, JsonNode c, long until) throws Exception {
        int window = c.path("window").asInt(1);
        byte[] payload = payload(c);
        Semaphore room = new Semaphore(window);
        AtomicReference<Throwable> failed = new AtomicReference<>();
        AtomicInteger count = new AtomicInteger();
        long[] spans = new long[1 << 23];
        while (System.nanoTime() < until && failed.get() == null && count.get() < spans.length - window) {
            room.acquire();
            long began = System.nanoTime();
            log.append(payload, error -> {
                if (error != null) {
                    failed.set(error);
                } else {
                    spans[count.getAndIncrement()] = System.nanoTime() - began;
                }
                room.release();
            });
        }
        room.acquire(window);
        if (failed.get() != null) {
            throw new IllegalStateException(failed.get());
        }
        return Arrays.copyOf(spans, count.get());
    }

    private static ObjectNode percentiles(long[] spans) {
        Arrays.sort(spans);
        return JSON.createObjectNode()
                .put("p50_ms", spans[spans.length / 2] / 1e6)
                .put("p99_ms", spans[(int) (spans.length * 0.99)] / 1e6);
    }

    /** Reads a topic that is written before, twice; the second time counts. */
    private static ObjectNode catchUp(Log log, JsonNode c) throws Exception {
        int records = c.get("records").asInt();
        byte[] payload = payload(c);
        Semaphore room = new Semaphore(1000);
        for (int i = 0; i < records; i++) {
            room.acquire();
            log.append(payload, error -> room.release());
        }
        room.acquire(1000);
        double wall = 0;
        for (int round = 0; round < 2; round++) {
            long began = System.nanoTime();
            int[] seen = {0};
            log.read(each -> ++seen[0] >= records);
            wall = (System.nanoTime() - began) / 1e9;
        }
        return JSON.createObjectNode().put("per_s", records / wall);
    }

    /** Appends by schedule; a record's latency counts from the time at which it was due. */
    private static ObjectNode endToEnd(Log log, JsonNode c) throws Exception {
        int rate = c.get("rate").asInt();
        int warm = rate;
        int records = warm + (int) (rate * c.get("seconds").asDouble());
        long[] spans = new long[records];
        int[] seen = {0};
        Thread reader = new Thread(() -> {
            try {
                log.read(each -> {
                    spans[seen[0]++] = System.nanoTime() - ByteBuffer.wrap(each).getLong();
                    return seen[0] >= records;
                });
            } catch (Exception error) {
                error.printStackTrace();
            }
        });
        reader.start();
        long began = System.nanoTime() + 500_000_000L;
        for (int i = 0; i < records; i++) {
            long due = began + i * 1_000_000_000L / rate;
            while (System.nanoTime() < due) {
                LockSupport.parkNanos(due - System.nanoTime());
            }
            byte[] payload = payload(c);
            ByteBuffer.wrap(payload).putLong(due);
            log.append(payload, error -> {});
        }
        reader.join(TimeUnit.SECONDS.toMillis(10));
        if (reader.isAlive()) {
            throw new IllegalStateException("the reader saw " + seen[0] + " of " + records + " records");
        }
        return percentiles(Arrays.copyOfRange(spans, warm, records));
    }

    /** One at a time; kills the process {@code kill}; seconds from then to the next acknowledgement. */
    private static ObjectNode failover(Log log, JsonNode c) throws Exception {
        appendAll(log, c, System.nanoTime() + 2_000_000_000L);
        new ProcessBuilder("kill", "-9", c.get("kill").asText()).start().waitFor();
        long killed = System.nanoTime();
        while (true) {
            Semaphore done = new Semaphore(0);
            AtomicReference<Throwable> failed = new AtomicReference<>();
            log.append(payload(c), error -> {
                failed.set(error);
                done.release();
            });
            if (done.tryAcquire(60, TimeUnit.SECONDS) && failed.get() == null) {
                return JSON.createObjectNode().put("seconds", (System.nanoTime() - killed) / 1e9);
            }
            Thread.sleep(10);
        }
    }
}
