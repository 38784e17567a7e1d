import com.google.protobuf.ByteString;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.StreamObserver;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import segments.v1.AppendGrpc;
import segments.v1.ReadGrpc;
import segments.v1.SegmentsOuterClass.AppendReply;
import segments.v1.SegmentsOuterClass.AppendRequest;
import segments.v1.SegmentsOuterClass.AppendResult;
import segments.v1.SegmentsOuterClass.CountRequest;
import segments.v1.SegmentsOuterClass.CreateStreamRequest;
import segments.v1.SegmentsOuterClass.Credits;
import segments.v1.SegmentsOuterClass.FindRequest;
import segments.v1.SegmentsOuterClass.GetOutcomeRequest;
import segments.v1.SegmentsOuterClass.GetStreamRequest;
import segments.v1.SegmentsOuterClass.ListStreamsRequest;
import segments.v1.SegmentsOuterClass.OpenProducerRequest;
import segments.v1.SegmentsOuterClass.Outcome;
import segments.v1.SegmentsOuterClass.Position;
import segments.v1.SegmentsOuterClass.ProducerRef;
import segments.v1.SegmentsOuterClass.Progress;
import segments.v1.SegmentsOuterClass.ReadReply;
import segments.v1.SegmentsOuterClass.ReadRequest;
import segments.v1.SegmentsOuterClass.SealRequest;
import segments.v1.SegmentsOuterClass.Seek;
import segments.v1.SegmentsOuterClass.SegmentError;
import segments.v1.SegmentsOuterClass.Settings;
import segments.v1.SegmentsOuterClass.StoredRecord;
import segments.v1.SegmentsOuterClass.StreamInfo;
import segments.v1.SegmentsOuterClass.TailRequest;
import segments.v1.SegmentsOuterClass.Window;
import segments.v1.StreamsGrpc;

/**
 * A user of the gateway of streams, on what protoc generates of the protocol. Its arguments are the story
 * ({@code appends} or {@code reads}) and the gateway's HOST:PORT. It prints {@code done}, or fails.
 */
public final class StreamStub {
    private static final long LONGEST_S = 60;
    private static final int BATCH = 4;
    private static final Metadata.Key<SegmentError> DETAIL = Metadata.Key.of(
            "segments-error-bin", ProtoUtils.metadataMarshaller(SegmentError.getDefaultInstance()));

    private final ManagedChannel channel;

    private StreamStub(ManagedChannel channel) {
        this.channel = channel;
    }

    public static void main(String[] args) throws Exception {
        ManagedChannel channel = Grpc.newChannelBuilder(args[1], InsecureChannelCredentials.create()).build();
        StreamStub user = new StreamStub(channel);
        try {
            switch (args[0]) {
                case "appends" -> user.appends();
                case "reads" -> user.reads();
                default -> throw new IllegalArgumentException(args[0]);
            }
            System.out.println("done");
        } finally {
            channel.shutdownNow();
        }
    }

    /** Creates, appends one by one and as a stream within its window, reads it back, and is refused in many ways. */
    private void appends() throws Exception {
        Settings settings = Settings.newBuilder().putValues("ack_quorum", "1").build();
        CreateStreamRequest create = CreateStreamRequest.newBuilder().setStream("orders").setSettings(settings).build();
        StreamInfo made = streams().create(create);
        same("1", made.getSettings().getValuesOrThrow("ack_quorum"), "a setting");
        List<String> listed = new ArrayList<>();
        streams().list(ListStreamsRequest.newBuilder().setPrefix("or").build())
                .forEachRemaining(each -> listed.add(each.getStream()));
        same(List.of("orders"), listed, "streams");

        OpenProducerRequest open = OpenProducerRequest.newBuilder().setStream("orders").setProducer("p").build();
        var state = append().openProducer(open);
        same(1L, state.getEpoch(), "the first epoch");
        same(false, state.hasLastSequence(), "whether the producer appended before");

        AppendResult one = append().append(batch(0)).getResult();
        same(1L, one.getPosition().getSegment(), "the first segment");
        same(BATCH - 1L, one.getLast().getSlot(), "the slot of the last record of a batch");
        same(false, one.getDuplicate(), "duplicate");

        int count = 50;
        List<AppendResult> results = appendStream(count);
        same(true, results.get(0).getDuplicate(), "duplicate");
        same(one.getPosition(), results.get(0).getPosition(), "where the duplicate stands");
        for (int number = 0; number < count; number++) {
            AppendResult again = append().append(batch(number)).getResult();
            same(true, again.getDuplicate(), "duplicate");
            same(results.get(number).getPosition(), again.getPosition(), "what both calls say of a batch");
            same(number > 0, !results.get(number).getDuplicate(), "new in the stream of appends");
        }

        ReadRequest whole = ReadRequest.newBuilder().setStream("orders").build();
        List<StoredRecord> records = new ArrayList<>();
        List<ReadReply> replies = new ArrayList<>();
        read().read(whole).forEachRemaining(replies::add);
        replies.forEach(reply -> records.addAll(reply.getBatch().getRecordsList()));
        same(true, replies.get(replies.size() - 1).hasEndOfStream(), "the end");
        same(count * BATCH, records.size(), "records");
        for (int number = 0; number < records.size(); number++) {
            StoredRecord record = records.get(number);
            same(value(number / BATCH), record.getRecord().getValue(), "a record");
            same((long) number, record.getProducer().getSequence(), "its producer's sequence");
            same(records.get(0).getSeqNo() + number, record.getSeqNo(), "its number");
        }
        same(results.get(count - 1).getLast(), records.get(records.size() - 1).getPosition(), "the last position");

        refusals(create, open, one, results.get(count - 1), count);
    }

    /** Appends batches as one call, with no more unanswered than the gateway allows; their results. */
    private List<AppendResult> appendStream(int count) throws Exception {
        Replies<AppendReply> replies = new Replies<>();
        StreamObserver<AppendRequest> requests =
                AppendGrpc.newStub(channel).withDeadlineAfter(LONGEST_S, TimeUnit.SECONDS).appendStream(replies);
        AppendReply first = replies.next();
        same(true, first.hasWindow(), "the window comes first");
        Window window = first.getWindow();
        List<AppendResult> results = new ArrayList<>();
        Deque<Long> unanswered = new ArrayDeque<>();
        long bytes = 0;
        boolean waited = false;
        for (int number = 0; number < count; number++) {
            long size = BATCH * (long) value(number).size();
            while (bytes + size > window.getBytes() || (unanswered.size() + 1L) * BATCH > window.getRecords()) {
                waited = true;
                results.add(result(replies.next()));
                bytes -= unanswered.remove();
            }
            requests.onNext(batch(number));
            unanswered.add(size);
            bytes += size;
        }
        requests.onCompleted();
        for (AppendReply reply = replies.next(); reply != null; reply = replies.next()) {
            results.add(result(reply));
        }
        same(true, waited, "the window was ever full");
        same(count, results.size(), "replies");
        return results;
    }

    /** Refused calls, when {@code count} batches of the producer are there: the first and the last one are given. */
    private void refusals(
            CreateStreamRequest create, OpenProducerRequest open, AppendResult one, AppendResult tail, int count) {
        SegmentError none = refused(
                Status.Code.NOT_FOUND,
                "stream-not-found",
                () -> streams().get(GetStreamRequest.newBuilder().setStream("none").build()));
        same(Outcome.OUTCOME_NOT_APPLIED, none.getOutcome(), "what became of a refused call");
        same("none", none.getStream(), "the stream of a refused call");
        refused(Status.Code.ALREADY_EXISTS, "stream-exists", () -> streams().create(create));
        refused(Status.Code.FAILED_PRECONDITION, "sequence-gap", () -> append().append(batch(count + 1)));
        append().openProducer(open);
        refused(Status.Code.FAILED_PRECONDITION, "producer-fenced", () -> append().append(batch(count)));
        AppendRequest.Builder plain = AppendRequest.newBuilder().setStream("orders").addValues(value(0));
        refused(
                Status.Code.FAILED_PRECONDITION,
                "tail-moved",
                () -> append().append(plain.clone().setExpectedTail(one.getPosition()).build()));
        AppendReply conditional = append().append(plain.clone().setExpectedTail(tail.getLast()).build());
        same(true, conditional.getResult().getPosition().getEntry() > tail.getLast().getEntry(), "a later entry");
        refused(
                Status.Code.DATA_LOSS,
                "entry-corrupt",
                () -> append().append(plain.clone().setCrc32C(1).build()));
        GetOutcomeRequest.Builder asked = GetOutcomeRequest.newBuilder().setStream("orders").setProducer("p");
        var applied = append().getOutcome(asked.clone().setSequence((long) count * BATCH - 1).build());
        same(Outcome.OUTCOME_APPLIED, applied.getOutcome(), "what became of the last append");
        same(tail.getLast(), applied.getResult().getPosition(), "where it stands");
        var never = append().getOutcome(asked.clone().setSequence((long) count * BATCH).build());
        same(Outcome.OUTCOME_NOT_APPLIED, never.getOutcome(), "what became of an append that never was");
    }

    /** Reads a part, counts, finds, and follows the end with credits, over a resumption and a seek. */
    private void reads() throws Exception {
        streams().create(CreateStreamRequest.newBuilder().setStream("log").build());
        for (int number = 0; number < 20; number++) {
            AppendRequest.Builder request = AppendRequest.newBuilder().setStream("log");
            for (int each = 0; each < 5; each++) {
                request.addValues(value(5 * number + each));
            }
            append().append(request.build());
        }
        List<ByteString> some = new ArrayList<>();
        read().read(ReadRequest.newBuilder().setStream("log").setMaxRecords(7).build())
                .forEachRemaining(reply -> some.addAll(values(reply)));
        same(values(0, 7), some, "the first records");
        same(100L, read().count(CountRequest.newBuilder().setStream("log").build()).getRecords(), "records");
        Seek middle = Seek.newBuilder().setSeqNo(42).build();
        Position place = read().find(FindRequest.newBuilder().setStream("log").setSeek(middle).build()).getPosition();

        Tail tail = new Tail(TailRequest.Open.newBuilder().setStart(Seek.newBuilder().setPosition(place)));
        same(false, tail.progress().getCaughtUp(), "caught up without credits");
        tail.give(3, 1 << 20);
        same(values(42, 45), tail.records(3), "as many records as credits");
        tail.progress();
        tail.give(1, 1);
        same(values(45, 46), tail.records(1), "one byte lets one record pass");
        tail.progress();
        ByteString token = tail.token;
        tail.requests.onError(Status.CANCELLED.asRuntimeException());

        Tail again = new Tail(TailRequest.Open.newBuilder().setResumeToken(token));
        again.give(100, 1 << 20);
        same(values(46, 100), again.records(54), "from the token on");
        while (!again.progress().getCaughtUp()) {
            continue;
        }
        append().append(AppendRequest.newBuilder().setStream("log").addValues(value(100)).build());
        same(values(100, 101), again.records(1), "what is appended later");
        again.requests.onNext(TailRequest.newBuilder().setSeek(Seek.newBuilder().setSeqNo(98)).build());
        same(values(98, 101), again.records(3), "from the place of the seek on");
        same(1L, again.generation, "seeks");
        streams().seal(SealRequest.newBuilder().setStream("log").build());
        ReadReply last = again.next();
        while (last.hasProgress()) {
            last = again.next();
        }
        same(true, last.hasEndOfStream(), "the end of a sealed stream");
        same(null, again.next(), "what follows the end");
        refused(
                Status.Code.FAILED_PRECONDITION,
                "stream-sealed",
                () -> append().append(AppendRequest.newBuilder().setStream("log").addValues(value(0)).build()));
    }

    /** The end of the stream {@code log}, followed. */
    private final class Tail {
        private final Replies<ReadReply> replies = new Replies<>();
        private final StreamObserver<TailRequest> requests =
                ReadGrpc.newStub(channel).withDeadlineAfter(LONGEST_S, TimeUnit.SECONDS).tail(replies);
        private ByteString token = ByteString.EMPTY;
        private long generation;

        Tail(TailRequest.Open.Builder open) {
            requests.onNext(TailRequest.newBuilder().setOpen(open.setStream("log").setProgressMs(100)).build());
        }

        void give(long records, long bytes) {
            Credits credits = Credits.newBuilder().setRecords(records).setBytes(bytes).build();
            requests.onNext(TailRequest.newBuilder().setCredits(credits).build());
        }

        ReadReply next() throws Exception {
            ReadReply reply = replies.next();
            if (reply != null) {
                token = reply.getResumeToken();
                generation = reply.getGeneration();
            }
            return reply;
        }

        /** The next records; replies of progress may stand before and between them. */
        List<ByteString> records(int count) throws Exception {
            List<ByteString> found = new ArrayList<>();
            while (found.size() < count) {
                ReadReply reply = next();
                same(true, reply != null && (reply.hasBatch() || reply.hasProgress()), "records or progress");
                found.addAll(values(reply));
            }
            return found;
        }

        Progress progress() throws Exception {
            ReadReply reply = next();
            same(true, reply != null && reply.hasProgress(), "progress");
            return reply.getProgress();
        }
    }

    /** The replies of a streaming call, one after the other. */
    private static final class Replies<T> implements StreamObserver<T> {
        private static final Object END = new Object();
        private final BlockingQueue<Object> came = new LinkedBlockingQueue<>();

        @Override
        public void onNext(T reply) {
            came.add(reply);
        }

        @Override
        public void onError(Throwable error) {
            came.add(error);
        }

        @Override
        public void onCompleted() {
            came.add(END);
        }

        /** The next reply; null at the end. Fails when nothing comes in time, or the call has failed. */
        @SuppressWarnings("unchecked")
        T next() throws Exception {
            Object reply = came.poll(LONGEST_S, TimeUnit.SECONDS);
            same(true, reply != null, "a reply in time");
            if (reply instanceof Throwable) {
                throw new AssertionError("the call has failed", (Throwable) reply);
            }
            return reply == END ? null : (T) reply;
        }
    }

    private StreamsGrpc.StreamsBlockingStub streams() {
        return StreamsGrpc.newBlockingStub(channel).withDeadlineAfter(LONGEST_S, TimeUnit.SECONDS);
    }

    private AppendGrpc.AppendBlockingStub append() {
        return AppendGrpc.newBlockingStub(channel).withDeadlineAfter(LONGEST_S, TimeUnit.SECONDS);
    }

    private ReadGrpc.ReadBlockingStub read() {
        return ReadGrpc.newBlockingStub(channel).withDeadlineAfter(LONGEST_S, TimeUnit.SECONDS);
    }

    private static AppendRequest batch(int number) {
        ProducerRef.Builder producer = ProducerRef.newBuilder().setName("p").setEpoch(1).setSequence(BATCH * number);
        AppendRequest.Builder request = AppendRequest.newBuilder().setStream("orders").setProducer(producer);
        for (int each = 0; each < BATCH; each++) {
            request.addValues(value(number));
        }
        return request.build();
    }

    private static ByteString value(int number) {
        return ByteString.copyFromUtf8("value " + number);
    }

    private static List<ByteString> values(int from, int to) {
        List<ByteString> found = new ArrayList<>();
        for (int number = from; number < to; number++) {
            found.add(value(number));
        }
        return found;
    }

    private static List<ByteString> values(ReadReply reply) {
        return reply.getBatch().getRecordsList().stream().map(each -> each.getRecord().getValue()).toList();
    }

    private static AppendResult result(AppendReply reply) {
        same(true, reply.hasResult(), "appended");
        return reply.getResult();
    }

    /** What the trailer of a refused call says; fails unless it is refused with this status and this code. */
    private static SegmentError refused(Status.Code status, String code, Runnable call) {
        try {
            call.run();
        } catch (StatusRuntimeException error) {
            SegmentError detail = error.getTrailers().get(DETAIL);
            same(status, error.getStatus().getCode(), "the status of " + error);
            same(true, detail != null, "the trailer segments-error-bin of " + error);
            same(code, detail.getCode(), "the code of " + error);
            return detail;
        }
        throw new AssertionError("not refused: " + code);
    }

    private static void same(Object expected, Object found, String what) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }
}
