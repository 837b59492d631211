import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** A Wheelhouse for tests: in memory, on a free port of loopback. Needs only the JDK. */
public final class Plane implements AutoCloseable {
  private final Process process;
  private final Path directory;

  private Plane(Process process, Path directory) {
    this.process = process;
    this.directory = directory;
  }

  /** Returns when the server is ready. WHEELHOUSE is the command that starts it. */
  public static Plane start() throws IOException {
    Path directory = Files.createTempDirectory("plane");
    String command = System.getenv().getOrDefault("WHEELHOUSE", "wheelhouse");
    List<String> words = new ArrayList<>(List.of(command.split(" ")));
    words.addAll(
        List.of(
            "serve",
            "--dialect=kubernetes",
            "--storage-backend=memory",
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--data-dir=" + directory));
    Process process = new ProcessBuilder(words).start();
    Plane plane = new Plane(process, directory);
    BufferedReader log = process.errorReader();
    String last = "";
    for (String line = log.readLine(); line != null; line = log.readLine()) {
      last = line;
      if (line.contains("\"msg\":\"ready\"")) {
        // Keeps reading, so that a full pipe does not block the server.
        Thread reader = new Thread(() -> readOn(log));
        reader.setDaemon(true);
        reader.start();
        return plane;
      }
    }
    plane.close();
    throw new IOException("the server did not start: " + last);
  }

  private static void readOn(BufferedReader log) {
    try {
      log.transferTo(Writer.nullWriter());
    } catch (IOException end) {
      // The plane is closed.
    }
  }

  /** A kubeconfig of the administrator. */
  public Path kubeconfig() {
    return directory.resolve("admin.kubeconfig");
  }

  @Override
  public void close() throws IOException {
    process.destroy();
    process.onExit().join();
    try (var files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(file);
    }
  }

  /** Starts a plane and prints its kubeconfig. */
  public static void main(String[] arguments) throws IOException {
    try (Plane plane = start()) {
      System.out.println(Files.readString(plane.kubeconfig()));
    }
  }
}
