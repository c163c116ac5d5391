import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;

/** Death: direct buffers, which lie outside of Java's heap, meet the group's limit. */
public class Direct {
    static final List<ByteBuffer> uploads = new ArrayList<>();

    static void keepUpload() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(200_000);
        while (buffer.hasRemaining()) buffer.put((byte) 1);
        uploads.add(buffer);
    }

    public static void main(String[] words) throws Exception {
        while (!Files.exists(Path.of("go"))) Thread.sleep(5);
        while (true) {
            keepUpload();
            Thread.sleep(3);
        }
    }
}
