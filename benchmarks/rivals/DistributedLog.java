import java.net.URI;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.distributedlog.DLSN;
import org.apache.distributedlog.DistributedLogConfiguration;
import org.apache.distributedlog.LogRecord;
import org.apache.distributedlog.LogRecordWithDLSN;
import org.apache.distributedlog.api.AsyncLogReader;
import org.apache.distributedlog.api.AsyncLogWriter;
import org.apache.distributedlog.api.DistributedLogManager;
import org.apache.distributedlog.api.namespace.Namespace;
import org.apache.distributedlog.api.namespace.NamespaceBuilder;
import org.apache.distributedlog.impl.metadata.BKDLConfig;
import org.apache.distributedlog.metadata.DLMetadata;

/** DistributedLog's core, a library: E3/Qw3/Qa2 on the bookies of the ZooKeeper and ledgers path {@code HOST:PORT/PATH}. */
public final class DistributedLog implements Rival.Log {
    private final String zookeeper;
    private final URI uri;
    private final String ledgers;
    private Namespace namespace;
    private DistributedLogManager manager;
    private AsyncLogWriter writer;
    private long transaction;

    public DistributedLog(String where) {
        zookeeper = where.substring(0, where.indexOf('/'));
        ledgers = where.substring(where.indexOf('/'));
        uri = URI.create("distributedlog://" + zookeeper + "/dl");
    }

    @Override
    public void open(String topic, int window) throws Exception {
        DistributedLogConfiguration conf = new DistributedLogConfiguration();
        conf.setEnsembleSize(3).setWriteQuorumSize(3).setAckQuorumSize(2);
        conf.setLogSegmentRollingIntervalMinutes(0).setMaxLogSegmentBytes(1L << 40);
        conf.setReadAheadMaxRecords(1000).setReadAheadBatchSize(100);
        conf.setProperty("bkc.throttle", 0);
        if (window >= 1000) {
            conf.setImmediateFlushEnabled(false).setOutputBufferSize(16 * 1024).setPeriodicFlushFrequencyMilliSeconds(2);
        } else {
            conf.setImmediateFlushEnabled(true).setOutputBufferSize(0);
        }
        try {
            DLMetadata.create(new BKDLConfig(zookeeper, ledgers)).create(uri);
        } catch (java.io.IOException bound) {
            DLMetadata.create(new BKDLConfig(zookeeper, ledgers)).update(uri);
        }
        namespace = NamespaceBuilder.newBuilder().conf(conf).uri(uri).build();
        if (!namespace.logExists(topic)) {
            namespace.createLog(topic);
        }
        manager = namespace.openLog(topic);
        writer = manager.openAsyncLogWriter().get();
    }

    @Override
    public void append(byte[] payload, Consumer<Throwable> done) {
        writer.write(new LogRecord(++transaction, payload)).whenComplete((dlsn, error) -> done.accept(error));
    }

    @Override
    public void read(Predicate<byte[]> each) throws Exception {
        AsyncLogReader reader = manager.openAsyncLogReader(DLSN.InitialDLSN).get(10, TimeUnit.SECONDS);
        try {
            while (true) {
                List<LogRecordWithDLSN> records = reader.readBulk(1000, 0, TimeUnit.MILLISECONDS).get();
                for (LogRecordWithDLSN record : records) {
                    if (each.test(record.getPayload())) {
                        return;
                    }
                }
            }
        } finally {
            reader.asyncClose();
        }
    }

    @Override
    public String leader() {
        throw new UnsupportedOperationException("a log has no server of its own");
    }

    @Override
    public void close() throws Exception {
        writer.asyncClose().get();
        manager.close();
        namespace.close();
    }
}
