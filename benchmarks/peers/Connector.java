// Rows of a binlog file as mysql-binlog-connector-java decodes them.
//
// In:  per run one line of JSON on standard input: {"file": "...", "passes": 3}.
// Out: {"rows": row changes of all passes, "values": column values that were there (not null)}.

import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.ChecksumType;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Connector {
  private static final Pattern REQUEST = Pattern.compile("\"file\": \"([^\"]*)\", \"passes\": (\\d+)");
  private long rows;
  private long values;

  public static void main(String[] arguments) throws Exception {
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
    String line;
    while ((line = requests.readLine()) != null) {
      Matcher request = REQUEST.matcher(line);
      if (!request.find()) {
        throw new IllegalArgumentException(line);
      }
      Connector run = new Connector();
      for (int pass = Integer.parseInt(request.group(2)); pass > 0; pass--) {
        run.read(request.group(1));
      }
      System.out.println("{\"rows\": " + run.rows + ", \"values\": " + run.values + "}");
    }
  }

  private void read(String file) throws Exception {
    EventDeserializer deserializer = new EventDeserializer();
    deserializer.setChecksumType(ChecksumType.CRC32);
    try (BinaryLogFileReader reader =
        new BinaryLogFileReader(new BufferedInputStream(new FileInputStream(file), 1 << 20), deserializer)) {
      Event event;
      while ((event = reader.readEvent()) != null) {
        count(event.getData());
      }
    }
  }

  private void count(EventData data) {
    if (data instanceof WriteRowsEventData) {
      ((WriteRowsEventData) data).getRows().forEach(this::touch);
      rows += ((WriteRowsEventData) data).getRows().size();
    } else if (data instanceof DeleteRowsEventData) {
      ((DeleteRowsEventData) data).getRows().forEach(this::touch);
      rows += ((DeleteRowsEventData) data).getRows().size();
    } else if (data instanceof UpdateRowsEventData) {
      for (Map.Entry<Serializable[], Serializable[]> change : ((UpdateRowsEventData) data).getRows()) {
        touch(change.getKey());
        touch(change.getValue());
        rows++;
      }
    }
  }

  private void touch(Serializable[] row) {
    for (Serializable value : row) {
      if (value != null) {
        values++;
      }
    }
  }
}
