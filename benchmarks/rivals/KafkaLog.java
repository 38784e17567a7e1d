import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka: one partition on three brokers, acks=all, an idempotent producer, no compression, linger 0. */
public final class KafkaLog implements Rival.Log {
    private final Properties where = new Properties();
    private final Admin admin;
    private KafkaProducer<byte[], byte[]> producer;
    private String topic;

    public KafkaLog(String servers) {
        where.put("bootstrap.servers", servers);
        admin = Admin.create(where);
    }

    @Override
    public void open(String topic, int window) throws Exception {
        this.topic = topic;
        try {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 3))).all().get();
        } catch (java.util.concurrent.ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
        }
        Properties settings = new Properties();
        settings.putAll(where);
        settings.put("acks", "all");
        settings.put("linger.ms", 0);
        settings.put("batch.size", window > 1 ? 256 * 1024 : 16 * 1024); // 16 KB would hold a window of 1,000 back
        settings.put("buffer.memory", 64L << 20);
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        producer.partitionsFor(topic);
    }

    @Override
    public void append(byte[] payload, Consumer<Throwable> done) {
        producer.send(new ProducerRecord<>(topic, 0, null, payload), (metadata, error) -> done.accept(error));
    }

    @Override
    public void read(Predicate<byte[]> each) {
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(where, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (each.test(record.value())) {
                        return;
                    }
                }
            }
        }
    }

    @Override
    public String leader() throws Exception {
        Map<String, org.apache.kafka.clients.admin.TopicDescription> all =
                admin.describeTopics(List.of(topic)).allTopicNames().get();
        return String.valueOf(all.get(topic).partitions().get(0).leader().id());
    }

    @Override
    public void close() {
        producer.close();
        admin.close();
    }
}
