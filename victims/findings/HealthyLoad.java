// Requests at a constant load: Java's heap rises and falls, and nothing of the program grows.
// run: java -Xmx64m
// finding: none
import java.util.ArrayDeque;

public class HealthyLoad {
    static final ArrayDeque<byte[]> recent = new ArrayDeque<>();

    static int serve(int number) {
        byte[] body = new byte[20_000 + number % 1000];
        recent.addLast(body);
        if (recent.size() > 50) recent.removeFirst();
        return body.length + Integer.toString(number).length();
    }

    public static void main(String[] arguments) throws Exception {
        long sum = 0;
        for (int number = 0; number < 12000; number++) {
            sum += serve(number);
            if (number % 8 == 0) Thread.sleep(1);
        }
        System.out.println(sum);
    }
}
