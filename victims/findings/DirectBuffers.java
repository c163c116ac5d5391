// Buffers outside of Java's heap, whose owners wait for a collection: memory rises and falls.
// run: java -XX:MaxDirectMemorySize=48m -Xmx64m
// finding: peak in Memory rises and falls as between collections
import java.nio.ByteBuffer;

public class DirectBuffers {
    static int readMessage(int number) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(64 << 10);
        buffer.putInt(0, number);
        return buffer.getInt(0);
    }

    public static void main(String[] arguments) throws Exception {
        long sum = 0;
        for (int number = 0; number < 3000; number++) {
            sum += readMessage(number);
            if (number % 4 == 0) Thread.sleep(2);
        }
        System.out.println(sum);
    }
}
