// Allocates direct buffers whose sizes stand for the allocating method and line, as the program
// itself finds them (`Throwable.getStackTrace`). The methods are called until they are compiled and
// inlined. At the end FILE (the first argument) gets the meaning of each size, and the number of
// its blocks.
//
// With VICTIM_WAITS=1 it says so and waits for a line first, during which it is attached to.

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntSupplier;

public class Lines {
    private static final int FIRST_BYTES = 40000;

    /** Meaning of a size. */
    private static final class Told {
        final String function;
        final int line;
        long blocks;

        Told(StackTraceElement place) {
            function = place.getClassName() + "." + place.getMethodName();
            line = place.getLineNumber();
        }
    }

    private static final Map<Integer, Told> TOLD = new TreeMap<>();
    private static final ByteBuffer[] KEPT = new ByteBuffer[16];
    private static int made;

    /** Returns the size for a location, which is found at the first call. */
    private static int size(int number) {
        int bytes = FIRST_BYTES + number * 64;
        synchronized (TOLD) {
            Told told = TOLD.get(bytes);
            if (told == null) {
                told = new Told(new Throwable().getStackTrace()[1]);
                TOLD.put(bytes, told);
            }
            told.blocks += 1;
        }
        return bytes;
    }

    private static void keep(ByteBuffer buffer) {
        KEPT[made++ % KEPT.length] = buffer;
    }

    private static void plain() {
        int more = 0;
        keep(ByteBuffer.allocateDirect(size(0) + more));
    }

    private static int innermost(int depth) {
        if (depth > 0) {
            return innermost(depth - 1) + 1;
        }
        keep(ByteBuffer.allocateDirect(size(1))); return 0;
    }

    private static synchronized void locked() {
        keep(ByteBuffer.allocateDirect(size(2)));
    }

    private int value;

    private Lines() {
        keep(ByteBuffer.allocateDirect(size(3)));
    }

    private int method() {
        if (value > 100) {
            keep(ByteBuffer.allocateDirect(size(4)));
        } else {
            keep(ByteBuffer.allocateDirect(size(5)));
        }
        return value++;
    }

    /** Overloaded methods. */
    private int method(int more) {
        keep(ByteBuffer.allocateDirect(size(6)));
        return more;
    }

    interface Shape {
        int area(int of);
    }

    static final class Square implements Shape {
        public int area(int of) {
            keep(ByteBuffer.allocateDirect(size(7)));
            return of * of;
        }
    }

    static final class Circle implements Shape {
        public int area(int of) {
            keep(ByteBuffer.allocateDirect(size(8)));
            return of * 3;
        }
    }

    private static void lambdas() {
        IntSupplier lambda = () -> {
            keep(ByteBuffer.allocateDirect(size(9)));
            return 1;
        };
        lambda.getAsInt();
        Runnable reference = Lines::referred;
        reference.run();
    }

    private static void referred() {
        keep(ByteBuffer.allocateDirect(size(10)));
    }

    private static Iterator<Integer> counting() {
        return new Iterator<Integer>() {
            private int at;

            @Override
            public boolean hasNext() {
                return at < 2;
            }

            @Override
            public Integer next() {
                keep(ByteBuffer.allocateDirect(size(11)));
                return at++;
            }
        };
    }

    public static void reflected() {
        keep(ByteBuffer.allocateDirect(size(12)));
    }

    private static void thrown(boolean really) {
        try {
            if (really) {
                throw new IllegalStateException("expected");
            }
        } catch (IllegalStateException expected) {
            keep(ByteBuffer.allocateDirect(size(13)));
        } finally {
            keep(ByteBuffer.allocateDirect(size(14)));
        }
    }

    private static int many(int a, long b, double c, String d, int... more) {
        long sum = a + b + (long) c + d.length() + more.length;
        keep(ByteBuffer.allocateDirect(size(15)));
        return (int) sum;
    }

    /** Runs long in one call, so that it is compiled while it runs. */
    private static int looping(int rounds) {
        int sum = 0;
        for (int round = 0; round < rounds; round++) {
            sum += round ^ sum << 1;
            if (round % (rounds / 16) == 0) {
                keep(ByteBuffer.allocateDirect(size(16)));
            }
        }
        return sum;
    }

    private static void work(Method reflected, int round) throws ReflectiveOperationException {
        plain();
        innermost(round % 20);
        locked();
        Lines lines = new Lines();
        for (int count = 0; count < 3; count++) {
            lines.value = round;
            lines.method();
        }
        lines.method(round);
        Shape shape = round % 3 == 0 ? new Circle() : new Square();
        shape.area(round);
        lambdas();
        for (Iterator<Integer> numbers = counting(); numbers.hasNext(); ) {
            numbers.next();
        }
        reflected.invoke(null);
        thrown(round % 5 == 0);
        many(round, round, round, "four", 1, 2, 3);
    }

    private static void onThread(int rounds, Method reflected) {
        try {
            for (int round = 0; round < rounds; round++) {
                synchronized (Lines.class) {
                    work(reflected, round);
                }
            }
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        if ("1".equals(System.getenv("VICTIM_WAITS"))) {
            System.out.println("ready");
            System.out.flush();
            if (System.in.read() < 0) {
                throw new IOException("nothing to read");
            }
        }
        String asked = System.getenv("VICTIM_ROUNDS");
        int rounds = asked == null ? 300 : Integer.parseInt(asked);
        Method reflected = Lines.class.getMethod("reflected");
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            Thread thread = new Thread(() -> onThread(rounds, reflected));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        looping(3_000_000);
        List<String> lines = new ArrayList<>();
        TOLD.forEach((bytes, told) -> lines.add(String.format(
            "{\"bytes\": %d, \"function\": \"%s\", \"file\": \"Lines.java\", \"line\": %d, \"blocks\": %d}",
            bytes, told.function, told.line, told.blocks)));
        Files.write(Path.of(arguments[0]), lines);
    }
}
