import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.bookkeeper.client.AsyncCallback.AddCallback;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * A load generator on Apache's client. It lives for the whole benchmark, so that it stays compiled, and obeys one-line
 * JSON commands on its standard input; each is answered with one line. Its twin is {@code load.py}: the same commands,
 * the same shape of load, the same fields.
 */
public final class Load {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final byte[] PASSWORD = new byte[0];
    private static final int SPANS_MAX = 1 << 18; // latencies kept of a run; large arrays would be the collector's work
    private static final Map<String, BookKeeper> CLIENTS = new HashMap<>();
    private static final Map<Long, LedgerHandle> LEFT_OPEN = new HashMap<>();

    private Load() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = in.readLine()) != null) {
            ObjectNode answer;
            try {
                answer = obey(JSON.readTree(line));
            } catch (Throwable error) {
                error.printStackTrace();
                answer = JSON.createObjectNode().put("error", String.valueOf(error));
            }
            if (answer == null) {
                break;
            }
            out.println(JSON.writeValueAsString(answer));
        }
        for (BookKeeper client : CLIENTS.values()) {
            client.close();
        }
        System.exit(0);
    }

    private static ObjectNode obey(JsonNode c) throws Exception {
        switch (c.get("op").asText()) {
            case "hello":
                return JSON.createObjectNode().put("pid", ProcessHandle.current().pid());
            case "add":
                return add(c);
            case "fill":
                return fill(c);
            case "read":
                return read(c);
            case "tail":
                return tail(c);
            case "create":
                return create(c);
            case "recover":
                return recover(c);
            case "first_add":
                return firstAdd(c);
            case "delete":
                client(c).deleteLedger(c.get("ledger").asLong());
                return JSON.createObjectNode();
            case "forget":
                return forget(c.get("uri").asText());
            case "quit":
                return null;
            default:
                throw new IllegalArgumentException("unknown command " + c);
        }
    }

    // -- clients ------------------------------------------------------------------------------------------------

    private static BookKeeper client(JsonNode c) throws Exception {
        String uri = c.get("uri").asText();
        boolean v2 = c.path("protocol").asText("v3").equals("v2");
        String key = uri + " " + v2;
        BookKeeper client = CLIENTS.get(key);
        if (client == null) {
            ClientConfiguration conf = new ClientConfiguration();
            conf.setMetadataServiceUri(uri);
            conf.setThrottleValue(0);
            conf.setUseV2WireProtocol(v2);
            JsonNode trust = c.path("trust");
            if (trust.isTextual()) {
                conf.setTLSProviderFactoryClass("org.apache.bookkeeper.tls.TLSContextFactory");
                conf.setTLSProvider("OpenSSL");
                conf.setTLSTrustStoreType("PEM");
                conf.setTLSTrustStore(trust.asText());
            }
            client = new BookKeeper(conf);
            CLIENTS.put(key, client);
        }
        return client;
    }

    private static ObjectNode forget(String uri) throws Exception {
        for (String key : CLIENTS.keySet().toArray(new String[0])) {
            if (key.startsWith(uri + " ")) {
                CLIENTS.remove(key).close();
            }
        }
        return JSON.createObjectNode();
    }

    private static LedgerHandle newLedger(BookKeeper client) throws Exception {
        return newLedger(client, 3);
    }

    private static LedgerHandle newLedger(BookKeeper client, int writeQuorum) throws Exception {
        return client.createLedger(3, writeQuorum, 2, BookKeeper.DigestType.CRC32C, PASSWORD);
    }

    private static ReadHandle open(BookKeeper client, long ledger, boolean recovery) throws Exception {
        return client.newOpenLedgerOp()
                .withLedgerId(ledger)
                .withRecovery(recovery)
                .withDigestType(DigestType.CRC32C)
                .withPassword(PASSWORD)
                .execute()
                .get();
    }

    // -- adds ---------------------------------------------------------------------------------------------------

    /** {@code window} adds in flight until time or count is used up. Confirmed adds send their successors. */
    private static final class ClosedLoop implements AddCallback {
        private final LedgerHandle ledger;
        private final byte[] payload;
        private final int window;
        private final AtomicLong left;
        private final long deadline;
        private final AtomicLong open = new AtomicLong();
        private final CountDownLatch finished = new CountDownLatch(1);
        private final AtomicReference<Exception> failure = new AtomicReference<>();
        private final long[] spans;
        private int done;

        ClosedLoop(LedgerHandle ledger, byte[] payload, int window, long count, double seconds) {
            this.ledger = ledger;
            this.payload = payload;
            this.window = window;
            this.left = new AtomicLong(count);
            this.deadline = System.nanoTime() + (long) (seconds * 1e9);
            this.spans = new long[(int) Math.min(count + window, SPANS_MAX)];
        }

        /** Returns how many were confirmed. */
        int run() throws Exception {
            open.incrementAndGet(); // this method itself, so that it cannot end before all are sent
            for (int i = 0; i < window; i++) {
                send();
            }
            close();
            finished.await();
            if (failure.get() != null) {
                throw failure.get();
            }
            return done;
        }

        /** The latencies in nanoseconds, one per add. */
        long[] spans() {
            return Arrays.copyOf(spans, Math.min(done, spans.length));
        }

        private void send() {
            long now = System.nanoTime();
            if (now < deadline && left.getAndDecrement() > 0) {
                open.incrementAndGet();
                ledger.asyncAddEntry(payload, this, now);
            }
        }

        private void close() {
            if (open.decrementAndGet() == 0) {
                finished.countDown();
            }
        }

        @Override
        public void addComplete(int rc, LedgerHandle handle, long entry, Object began) {
            if (rc != BKException.Code.OK) {
                failure.compareAndSet(null, BKException.create(rc));
            } else {
                if (done < spans.length) { // always called by the one thread of this ledger
                    spans[done] = System.nanoTime() - (Long) began;
                }
                done++;
                send();
            }
            close();
        }
    }

    private static ObjectNode add(JsonNode c) throws Exception {
        BookKeeper client = client(c);
        byte[] payload = new byte[c.get("size").asInt()];
        int window = c.get("window").asInt();
        LedgerHandle ledger = newLedger(client, c.path("write_quorum").asInt(3));
        double warm = c.path("warm_s").asDouble(0.3);
        new ClosedLoop(ledger, payload, window, Integer.MAX_VALUE / 2, warm).run();
        ClosedLoop loop =
                new ClosedLoop(ledger, payload, window, c.get("count").asLong(), c.get("seconds").asDouble());
        Meter meter = new Meter(c);
        int done = loop.run();
        ObjectNode answer = meter.stop(done, loop.spans());
        ledger.close();
        client.deleteLedger(ledger.getId());
        return answer;
    }

    private static ObjectNode fill(JsonNode c) throws Exception {
        BookKeeper client = client(c);
        LedgerHandle ledger = newLedger(client);
        byte[] payload = new byte[c.get("size").asInt()];
        long count = c.get("count").asLong();
        new ClosedLoop(ledger, payload, c.path("window").asInt(1000), count, 600).run();
        if (c.path("close").asBoolean(true)) {
            ledger.close();
        } else {
            LEFT_OPEN.put(ledger.getId(), ledger);
        }
        return JSON.createObjectNode().put("ledger", ledger.getId());
    }

    // -- reads --------------------------------------------------------------------------------------------------

    private static final class Reads {
        private final ReadHandle ledger;
        private final String mode;
        private final int batch;
        private final long deadline;
        private final AtomicLong next = new AtomicLong();
        private final AtomicLong entries = new AtomicLong();
        private final AtomicLong open = new AtomicLong();
        private final CountDownLatch finished = new CountDownLatch(1);
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private final SplittableRandom random = new SplittableRandom(7);
        private final long[] spans = new long[SPANS_MAX];
        private final AtomicLong done = new AtomicLong();
        private final long size;

        Reads(ReadHandle ledger, String mode, int batch, double seconds) {
            this.ledger = ledger;
            this.mode = mode;
            this.batch = batch;
            this.size = ledger.getLastAddConfirmed() + 1;
            this.deadline = System.nanoTime() + (long) (seconds * 1e9);
        }

        void run(int window) throws Exception {
            open.incrementAndGet();
            for (int i = 0; i < window; i++) {
                open.incrementAndGet();
                send();
            }
            close();
            finished.await();
            if (failure.get() != null) {
                throw new Exception(failure.get());
            }
        }

        private void close() {
            if (open.decrementAndGet() == 0) {
                finished.countDown();
            }
        }

        private void send() {
            long began = System.nanoTime();
            if (began >= deadline || failure.get() != null) {
                close();
                return;
            }
            CompletableFuture<LedgerEntries> answer;
            if (mode.equals("batch")) {
                long first = next.getAndAdd(batch) % size;
                answer = ledger.batchReadAsync(first, (int) Math.min(batch, size - first), 4 << 20);
            } else {
                long entry;
                if (mode.equals("random")) {
                    synchronized (random) {
                        entry = random.nextLong(size);
                    }
                } else {
                    entry = next.getAndIncrement() % size;
                }
                answer = ledger.readAsync(entry, entry);
            }
            answer.whenComplete((found, error) -> {
                if (error != null) {
                    failure.compareAndSet(null, error);
                } else {
                    int count = 0;
                    for (LedgerEntry entry : found) {
                        count += entry.getEntryBytes().length > 0 ? 1 : 0;
                    }
                    found.close();
                    entries.addAndGet(count);
                    int at = (int) done.getAndIncrement();
                    if (at < spans.length) {
                        spans[at] = System.nanoTime() - began;
                    }
                }
                send();
            });
        }
    }

    private static ObjectNode read(JsonNode c) throws Exception {
        try (ReadHandle ledger = open(client(c), c.get("ledger").asLong(), false)) {
            String mode = c.get("mode").asText();
            int batch = c.path("batch").asInt(100);
            int window = c.get("window").asInt();
            new Reads(ledger, mode, batch, c.path("warm_s").asDouble(0.3)).run(window);
            Reads reads = new Reads(ledger, mode, batch, c.get("seconds").asDouble());
            Meter meter = new Meter(c);
            reads.run(window);
            int done = (int) Math.min(reads.done.get(), reads.spans.length);
            return meter.stop(reads.entries.get(), Arrays.copyOf(reads.spans, done));
        }
    }

    /** Adds at a fixed rate, and a reader in long poll: from the add's call to the entry in the reader's hand. */
    private static ObjectNode tail(JsonNode c) throws Exception {
        BookKeeper client = client(c);
        int rate = c.get("rate").asInt();
        int count = (int) (rate * c.get("seconds").asDouble());
        LedgerHandle ledger = newLedger(client);
        ledger.addEntry(new byte[100]);
        ledger.addEntry(new byte[100]);
        long[] sent = new long[count + 2];
        long[] seen = new long[count + 2];
        AtomicBoolean ended = new AtomicBoolean();
        ReadHandle reader = open(client, ledger.getId(), false);
        Thread follower = new Thread(() -> follow(reader, seen, ended));
        Meter meter = new Meter(c);
        follower.start();
        AtomicReference<Exception> failure = new AtomicReference<>();
        long began = System.nanoTime();
        CountDownLatch confirmed = new CountDownLatch(count);
        byte[] payload = new byte[c.get("size").asInt()];
        for (int i = 0; i < count; i++) {
            long due = began + i * 1_000_000_000L / rate;
            long pause;
            while ((pause = due - System.nanoTime()) > 0) {
                LockSupport.parkNanos(pause);
            }
            sent[i + 2] = System.nanoTime();
            ledger.asyncAddEntry(payload, (rc, handle, entry, ctx) -> {
                if (rc != BKException.Code.OK) {
                    failure.compareAndSet(null, BKException.create(rc));
                }
                confirmed.countDown();
            }, null);
        }
        confirmed.await();
        ledger.close();
        follower.join(20_000);
        ended.set(true);
        if (failure.get() != null) {
            throw failure.get();
        }
        long[] spans = new long[count];
        int done = 0;
        for (int i = 2; i < seen.length; i++) {
            if (seen[i] != 0) {
                spans[done++] = seen[i] - sent[i];
            }
        }
        ObjectNode answer = meter.stop(done, Arrays.copyOf(spans, done));
        reader.close();
        client.deleteLedger(ledger.getId());
        return answer.put("missing", count - done);
    }

    private static void follow(ReadHandle reader, long[] seen, AtomicBoolean ended) {
        int next = 0;
        try {
            while (next < seen.length && !ended.get()) {
                if (reader.getLastAddConfirmed() >= next) {
                    long last = Math.min(reader.getLastAddConfirmed(), seen.length - 1);
                    try (LedgerEntries entries = reader.read(next, last)) {
                        long now = System.nanoTime();
                        for (LedgerEntry entry : entries) {
                            seen[(int) entry.getEntryId()] = now;
                        }
                    }
                    next = (int) last + 1;
                    continue;
                }
                try (LastConfirmedAndEntry came = reader.readLastAddConfirmedAndEntry(next, 1000, true)) {
                    if (came.hasEntry() && came.getEntry().getEntryId() == next) {
                        seen[next++] = System.nanoTime();
                    }
                }
            }
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    // -- ledgers ------------------------------------------------------------------------------------------------

    private static ObjectNode create(JsonNode c) throws Exception {
        BookKeeper client = client(c);
        int lanes = c.get("lanes").asInt();
        long warm = System.nanoTime() + (long) (c.path("warm_s").asDouble(0.3) * 1e9);
        pairs(client, lanes, warm);
        Meter meter = new Meter(c);
        long[] spans = pairs(client, lanes, System.nanoTime() + (long) (c.get("seconds").asDouble() * 1e9));
        return meter.stop(spans.length, spans);
    }

    private static long[] pairs(BookKeeper client, int lanes, long deadline) throws Exception {
        long[] spans = new long[SPANS_MAX];
        AtomicLong done = new AtomicLong();
        CompletableFuture<?>[] running = new CompletableFuture<?>[lanes];
        for (int i = 0; i < lanes; i++) {
            CompletableFuture<Void> lane = new CompletableFuture<>();
            running[i] = lane;
            pair(client, deadline, spans, done, lane);
        }
        CompletableFuture.allOf(running).get(120, TimeUnit.SECONDS);
        return Arrays.copyOf(spans, (int) done.get());
    }

    private static void pair(
            BookKeeper client, long deadline, long[] spans, AtomicLong done, CompletableFuture<Void> lane) {
        long began = System.nanoTime();
        if (began >= deadline) {
            lane.complete(null);
            return;
        }
        client.newCreateLedgerOp()
                .withEnsembleSize(3)
                .withWriteQuorumSize(3)
                .withAckQuorumSize(2)
                .withDigestType(DigestType.CRC32C)
                .withPassword(PASSWORD)
                .execute()
                .thenCompose(WriteHandle::closeAsync)
                .whenComplete((nothing, error) -> {
                    if (error != null) {
                        lane.completeExceptionally(error);
                        return;
                    }
                    spans[(int) done.getAndIncrement()] = System.nanoTime() - began;
                    pair(client, deadline, spans, done, lane);
                });
    }

    private static ObjectNode recover(JsonNode c) throws Exception {
        BookKeeper client = client(c);
        long began = System.nanoTime();
        ReadHandle ledger = open(client, c.get("ledger").asLong(), true);
        double seconds = (System.nanoTime() - began) / 1e9;
        long entries = ledger.getLastAddConfirmed() + 1;
        ledger.close();
        LEFT_OPEN.remove(c.get("ledger").asLong());
        client.deleteLedger(c.get("ledger").asLong());
        return JSON.createObjectNode().put("recovered_s", seconds).put("entries", entries);
    }

    /** Waits for the first bookie of a cluster that is starting: until one add on one bookie is confirmed. */
    private static ObjectNode firstAdd(JsonNode c) throws Exception {
        long deadline = System.nanoTime() + (long) (c.path("patience_s").asDouble(60) * 1e9);
        while (true) {
            try (LedgerHandle ledger =
                    client(c).createLedger(1, 1, 1, BookKeeper.DigestType.CRC32C, PASSWORD)) {
                ledger.addEntry(new byte[100]);
                return JSON.createObjectNode();
            } catch (BKException error) {
                if (System.nanoTime() > deadline) {
                    throw error;
                }
                Thread.sleep(10);
            }
        }
    }

    // -- measuring ----------------------------------------------------------------------------------------------

    /** Wall time, and CPU of this process, of those named, and of the whole machine, from its making to stop(). */
    private static final class Meter {
        private final JsonNode pids;
        private final double ticks;
        private final double own;
        private final double others;
        private final double machine;
        private final long began;

        Meter(JsonNode command) throws Exception {
            pids = command.path("pids");
            ticks = command.path("ticks").asDouble(100);
            own = cpu("self");
            others = all();
            machine = machine();
            began = System.nanoTime();
        }

        ObjectNode stop(long entries, long[] spans) throws Exception {
            ObjectNode answer = JSON.createObjectNode()
                    .put("entries", entries)
                    .put("seconds", (System.nanoTime() - began) / 1e9)
                    .put("cpu_client_s", cpu("self") - own)
                    .put("cpu_bookies_s", all() - others)
                    .put("cpu_machine_s", machine() - machine);
            Arrays.sort(spans); // not a part of what is measured
            return answer.put("p50_us", rank(spans, 0.50))
                    .put("p99_us", rank(spans, 0.99))
                    .put("p999_us", rank(spans, 0.999));
        }

        private static double rank(long[] sorted, double part) {
            if (sorted.length == 0) {
                return 0;
            }
            return sorted[Math.min(sorted.length - 1, (int) (sorted.length * part))] / 1e3;
        }

        private double all() throws Exception {
            double sum = 0;
            for (JsonNode pid : pids) {
                sum += cpu(pid.asText());
            }
            return sum;
        }

        private double cpu(String pid) throws Exception {
            String text = Files.readString(Path.of("/proc/" + pid + "/stat"));
            String[] fields = text.substring(text.lastIndexOf(')') + 2).split(" ");
            return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / ticks;
        }

        private double machine() throws Exception {
            String line = Files.readString(Path.of("/proc/stat")).lines().findFirst().orElseThrow();
            String[] fields = line.trim().split("\\s+");
            long busy = 0;
            for (int i = 1; i <= 8; i++) {
                if (i != 4 && i != 5) {
                    busy += Long.parseLong(fields[i]);
                }
            }
            return busy / ticks;
        }
    }
}
