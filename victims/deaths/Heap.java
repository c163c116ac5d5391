import java.nio.file.*;
import java.util.*;

/** Death: Java's heap grows until the group's limit is met, or its own (-Xmx). */
public class Heap {
    static final Map<Integer, byte[]> orders = new HashMap<>();

    public static void main(String[] words) throws Exception {
        while (!Files.exists(Path.of("go"))) Thread.sleep(5);
        for (int number = 0;; number++) {
            orders.put(number, new byte[100_000]);
            Thread.sleep(3);
        }
    }
}
