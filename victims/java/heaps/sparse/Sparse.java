import java.io.*;
import java.util.*;

/**
 * Collections with more room than contents. `heapr snapshot collections --owners` has to say:
 *   Sparse$Basket.notes (HashMap)       20,000 collections, 1,280,000 slots, 20,000 of them used
 *   Sparse$Basket.items (ArrayList)     20,000 collections, all of them empty, without slots
 *   class Sparse: BY_DAY[…] (ArrayList) 1,000 collections, 50,000 slots, 1,000 of them used
 */
public class Sparse {
    static class Basket {
        final Map<String, Object> notes = new HashMap<>(64);
        final List<Object> items = new ArrayList<>();
        Basket() { notes.put("one", this); }
    }

    static final List<Basket> BASKETS = new ArrayList<>();
    static final Map<Integer, List<String>> BY_DAY = new HashMap<>();

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 20_000; i++) BASKETS.add(new Basket());
        for (int i = 0; i < 1_000; i++) {
            List<String> day = new ArrayList<>(50);
            day.add("day");
            BY_DAY.put(i, day);
        }
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) System.out.println("DONE");
    }
}
