// What soak_client.py asks, in lines: each answer sums up direct buffers, so that malloc is asked for memory all the time.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.zip.Deflater;
import java.nio.ByteBuffer;

public class SoakServer {
    static long answer(int number) {
        long sum = 0;
        for (int k = 0; k < 50; k++) {
            byte[] bytes = new byte[1000 + (number + k) % 3000];
            if (k % 10 == 0) {
                // Its state and its windows are malloc's.
                Deflater deflater = new Deflater();
                deflater.setInput(bytes);
                deflater.finish();
                deflater.deflate(new byte[4096]);
                sum += deflater.getTotalIn();
                deflater.end();
            } else {
                sum += ByteBuffer.allocateDirect(bytes.length).capacity();
            }
        }
        return sum;
    }

    private static void serve(Socket socket) {
        try (Socket closed = socket) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(closed.getInputStream()));
            OutputStream out = closed.getOutputStream();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                out.write((answer(Integer.parseInt(line)) + "\n").getBytes());
                out.flush();
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(3);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        try (ServerSocket server = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket socket = server.accept();
                new Thread(() -> serve(socket)).start();
            }
        }
    }
}
