import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Apache Kafka's tools one after the other in one JVM, which saves a second for each. A line on stdin is a main class
 * and its arguments, separated by tabs; the answer is a line "exit code, bytes of stdout, bytes of stderr" and those bytes.
 */
public class Tools {
    private static volatile int code;

    public static void main(String[] none) throws Exception {
        PrintStream stdout = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
            CountDownLatch over = new CountDownLatch(1);
            code = 0;
            // Whoever exits does nothing more, as if its process had ended.
            Exit.Procedure end = (status, message) -> {
                if (message != null) {
                    System.err.println(message);
                }
                code = status;
                over.countDown();
                while (true) {
                    LockSupport.park();
                }
            };
            Exit.setExitProcedure(end);
            Exit.setHaltProcedure(end);
            Thread tool = new Thread(() -> {
                try {
                    Class.forName(words[0]).getMethod("main", String[].class)
                        .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
                } catch (InvocationTargetException e) {
                    e.getCause().printStackTrace();
                    code = 1;
                } catch (ReflectiveOperationException e) {
                    e.printStackTrace();
                    code = 1;
                }
                over.countDown();
            });
            tool.setDaemon(true);
            tool.start();
            over.await();
            System.out.flush();
            System.err.flush();
            stdout.print(code + " " + out.size() + " " + err.size() + "\n");
            out.writeTo(stdout);
            err.writeTo(stdout);
            stdout.flush();
        }
    }
}
