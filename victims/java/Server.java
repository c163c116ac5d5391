// A server that answers each request with a sum over a direct buffer and a deflated copy of it, so
// that it calls malloc all the time. It is attached to and detached from again and again, and must
// give right answers meanwhile.
//
// PORT is printed at its start. A request is one line with a number; "stop" ends it.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Server {
    /** A sum over `number` bytes, which went through a buffer and were packed and unpacked. */
    static long answer(int number) throws Exception {
        int bytes = 1000 + number % 50000;
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
        for (int at = 0; at < bytes; at++) {
            buffer.put(at, (byte) (at * 31 + number));
        }
        byte[] plain = new byte[bytes];
        buffer.get(plain);
        Deflater deflater = new Deflater();
        deflater.setInput(plain);
        deflater.finish();
        byte[] packed = new byte[bytes + 1000];
        int packedBytes = deflater.deflate(packed);
        deflater.end();
        Inflater inflater = new Inflater();
        inflater.setInput(packed, 0, packedBytes);
        byte[] unpacked = new byte[bytes];
        int count = inflater.inflate(unpacked);
        inflater.end();
        long sum = count;
        for (byte one : unpacked) {
            sum = sum * 131 + one;
        }
        return sum;
    }

    private static void serve(Socket socket) {
        try (Socket closed = socket) {
            BufferedReader lines =
                new BufferedReader(new InputStreamReader(closed.getInputStream(), StandardCharsets.UTF_8));
            OutputStream out = closed.getOutputStream();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("stop")) {
                    System.exit(0);
                }
                out.write((answer(Integer.parseInt(line)) + "\n").getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(3);
        }
    }

    public static void main(String[] arguments) throws IOException {
        ExecutorService pool = Executors.newCachedThreadPool();
        try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            System.out.println(server.getLocalPort());
            System.out.flush();
            while (true) {
                Socket socket = server.accept();
                pool.execute(() -> serve(socket));
            }
        }
    }
}
