// Row changes of a binlog file as Debezium's embedded engine delivers them, to nobody: there is no sink.
//
// In:  per run one line of JSON on standard input:
//      {"host", "port", "user", "password", "file", "gtid", "rows", "table", "folder"}; gtid: what the server
//      had committed before the file. With "snapshot": "initial" the table's rows instead, by SELECT; file and
//      gtid are then left out.
// Out: {"rows": row changes delivered, "values": column values in them that were there (not null)}.
//
// The engine starts with the file: its offset is written before it starts, and snapshot.mode=recovery
// reads the tables' columns from the server, not their rows. Records stay Connect structs: the cheapest format.

import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

public class Debezium {
  private static final Pattern PAIR = Pattern.compile("\"(\\w+)\": \"?([^\",}]*)\"?");
  private final CountDownLatch done = new CountDownLatch(1);
  private final long wanted;
  private long rows;
  private long values;
  private String failure = "";

  private Debezium(long wanted) {
    this.wanted = wanted;
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
    String line;
    while ((line = requests.readLine()) != null) {
      Map<String, String> asked = new HashMap<>();
      for (Matcher pair = PAIR.matcher(line); pair.find(); ) {
        asked.put(pair.group(1), pair.group(2));
      }
      Debezium run = new Debezium(Long.parseLong(asked.get("rows")));
      try {
        run.stream(asked);
      } catch (Exception error) {
        System.err.println(error);
        System.exit(1); // the engine's threads would keep us waiting
      }
      System.out.println("{\"rows\": " + run.rows + ", \"values\": " + run.values + "}");
    }
    System.exit(0);
  }

  private void stream(Map<String, String> asked) throws Exception {
    Path offsets = Files.createTempFile(Path.of(asked.get("folder")), "offsets", ".dat");
    if (!asked.containsKey("snapshot")) {
      writeOffset(offsets, asked.get("file"), asked.get("gtid"));
    }
    DebeziumEngine<RecordChangeEvent<SourceRecord>> engine =
        DebeziumEngine.create(ChangeEventFormat.of(Connect.class))
            .using(settings(asked, offsets))
            .using((success, message, error) -> {
              failure = success ? "" : message + " " + error;
              done.countDown();
            })
            .notifying(this::take)
            .build();
    ExecutorService thread = Executors.newSingleThreadExecutor();
    thread.execute(engine);
    done.await(10, TimeUnit.MINUTES);
    if (rows < wanted) {
      throw new IllegalStateException(rows + " of " + wanted + " rows: " + failure);
    }
    engine.close();
    thread.shutdown();
    Files.delete(offsets);
  }

  private void take(
      List<RecordChangeEvent<SourceRecord>> events,
      DebeziumEngine.RecordCommitter<RecordChangeEvent<SourceRecord>> committer)
      throws InterruptedException {
    for (RecordChangeEvent<SourceRecord> event : events) {
      Object value = event.record().value();
      if (value instanceof Struct && ((Struct) value).schema().field("op") != null) {
        rows++;
        touch(((Struct) value).getStruct("before"));
        touch(((Struct) value).getStruct("after"));
      }
      committer.markProcessed(event);
    }
    committer.markBatchFinished();
    if (rows >= wanted) {
      done.countDown();
    }
  }

  private void touch(Struct row) {
    if (row != null) {
      for (Field field : row.schema().fields()) {
        if (row.get(field) != null) {
          values++;
        }
      }
    }
  }

  // Kafka Connect's FileOffsetBackingStore: a serialised HashMap of byte[] to byte[].
  private static void writeOffset(Path path, String file, String gtid) throws Exception {
    HashMap<byte[], byte[]> map = new HashMap<>();
    map.put(
        "[\"bench\",{\"server\":\"bench\"}]".getBytes(StandardCharsets.UTF_8),
        ("{\"file\":\"" + file + "\",\"pos\":4,\"gtids\":\"" + gtid + "\"}").getBytes(StandardCharsets.UTF_8));
    try (ObjectOutputStream out = new ObjectOutputStream(Files.newOutputStream(path))) {
      out.writeObject(map);
    }
  }

  private static Properties settings(Map<String, String> asked, Path offsets) {
    Properties found = new Properties();
    found.setProperty("name", "bench");
    found.setProperty("connector.class", "io.debezium.connector.mariadb.MariaDbConnector");
    found.setProperty("topic.prefix", "bench");
    found.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
    found.setProperty("offset.storage.file.filename", offsets.toString());
    found.setProperty("offset.flush.interval.ms", "60000");
    found.setProperty("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory");
    found.setProperty("snapshot.mode", asked.getOrDefault("snapshot", "recovery"));
    found.setProperty("snapshot.locking.mode", "none");
    found.setProperty("database.hostname", asked.get("host"));
    found.setProperty("database.port", asked.get("port"));
    found.setProperty("database.user", asked.get("user"));
    found.setProperty("database.password", asked.get("password"));
    found.setProperty("database.server.id", "987655");
    found.setProperty("database.ssl.mode", "disable");
    found.setProperty("table.include.list", asked.get("table"));
    found.setProperty("include.schema.changes", "false");
    return found;
  }
}
