// Tables of a database in Paimon, kept by Flink CDC: one job in one JVM (Flink's MiniCluster).
//
// In:  per request one line of JSON on standard input, {"script": path}: statements, each on a line of its own.
// Out: {"rows": n, "values": m}; n: rows of the last statement's result, by their first column when it is a number;
//      m: its columns as text, joined by "|". A script with INSERTs starts all of them as one job, and answers when it runs.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.StatementSet;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

public class Flink {
  private static final Pattern SCRIPT = Pattern.compile("\"script\": \"([^\"]*)\"");

  public static void main(String[] arguments) throws Exception {
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
    String line;
    while ((line = requests.readLine()) != null) {
      Matcher script = SCRIPT.matcher(line);
      if (!script.find()) {
        throw new IllegalArgumentException(line);
      }
      try {
        System.out.println(run(Path.of(script.group(1))));
      } catch (Exception error) {
        error.printStackTrace();
        System.exit(1);
      }
    }
    System.exit(0);
  }

  private static String run(Path script) throws Exception {
    Configuration settings = new Configuration();
    settings.setString("parallelism.default", "1");
    settings.setString("execution.checkpointing.interval", "1 s");
    settings.setString("execution.checkpointing.dir", "file://" + script.getParent().resolve("checkpoints"));
    settings.setString("pipeline.object-reuse", "true");
    settings.setString("table.exec.sink.upsert-materialize", "NONE");
    settings.setString("table.local-time-zone", "UTC");
    String text = Files.readString(script);
    boolean streams = text.contains("INSERT INTO");
    TableEnvironment tables;
    if (streams) {
      tables = StreamTableEnvironment.create(StreamExecutionEnvironment.getExecutionEnvironment(settings));
      settings.toMap().forEach(tables.getConfig()::set);
    } else {
      tables = TableEnvironment.create(EnvironmentSettings.newInstance().inBatchMode().withConfiguration(settings).build());
    }
    StatementSet job = tables.createStatementSet();
    String answer = "{\"rows\": 0, \"values\": 1}";
    for (String statement : text.lines().toList()) {
      if (statement.startsWith("INSERT INTO")) {
        job.addInsertSql(statement);
        continue;
      }
      TableResult result = tables.executeSql(statement);
      if (statement.startsWith("SELECT")) {
        try (CloseableIterator<Row> rows = result.collect()) {
          Row row = rows.next();
          StringBuilder values = new StringBuilder();
          for (int at = 0; at < row.getArity(); at++) {
            values.append(at == 0 ? "" : "|").append(row.getField(at));
          }
          answer = "{\"rows\": " + row.getField(0) + ", \"values\": \"" + values + "\"}";
        }
      }
    }
    if (streams) {
      JobClient client = job.execute().getJobClient().orElseThrow();
      while (client.getJobStatus().get() != JobStatus.RUNNING) {
        if (client.getJobStatus().get().isGloballyTerminalState()) {
          client.getJobExecutionResult().get();
        }
        Thread.sleep(100);
      }
    }
    return answer;
  }
}
