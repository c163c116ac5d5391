import java.io.*;
import java.lang.ref.*;
import java.nio.ByteBuffer;
import java.util.*;

/** One of each: a map that was emptied, copies of a text, soft and weak references, thread-local values. */
public class Kinds {
    static class Softly { final byte[] bytes = new byte[10_000]; }
    static class Weakly { final byte[] bytes = new byte[10_000]; }
    static class Draft { final byte[] bytes = new byte[10_000]; }
    static class Frame { final ByteBuffer pixels = ByteBuffer.allocateDirect(300_000); }

    static final Map<Integer, Object> EMPTIED = new HashMap<>();
    static final List<String> COPIES = new ArrayList<>();
    static final SoftReference<Softly> SOFT = new SoftReference<>(new Softly());
    static final WeakReference<Weakly> WEAK = new WeakReference<>(new Weakly());
    static final ThreadLocal<List<Draft>> DRAFTS = ThreadLocal.withInitial(ArrayList::new);
    static final Frame FRAME = new Frame();
    static final ByteBuffer VIEW = FRAME.pixels.duplicate();

    static void step() { for (int i = 0; i < 20; i++) DRAFTS.get().add(new Draft()); }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 5_000; i++) EMPTIED.put(i, "");
        EMPTIED.clear();
        // Made at run time: no constant of the class is one more copy.
        char[] text = new StringBuilder("semit ynam yromem ni si taht txet a").reverse().toString().toCharArray();
        for (int i = 0; i < 500; i++) COPIES.add(new String(text));
        step();
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) { step(); System.out.println("DONE"); }   // each line: one step more
    }
}
