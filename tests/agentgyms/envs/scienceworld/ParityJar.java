import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import scienceworld.runtime.pythonapi.PythonInterface;

/**
 * Plays many turns of ScienceWorld a request, for parity_long.py, without py4j's round trips.
 *
 * <p>A request is a line of fields with tabs between them: `load`, task, variation and
 * simplifications; or commands, each after `-`, or after `+` where the valid actions are wanted.
 * The answer is a line of turns, of which parity_long.py has the separators.
 */
public final class ParityJar {
    private static final long SCRAMBLED = 0x5DEECE66DL; // as Random.setSeed takes a seed
    private final PythonInterface game = new PythonInterface();

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
        System.setOut(nowhere);
        scala.Console.setOut(nowhere);
        ParityJar jar = new ParityJar();
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(input);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            replies.print(jar.answer(line.split("\t", -1)).replace('\n', '\u001c') + "\n");
            replies.flush();
        }
    }

    private String answer(String[] fields) throws Exception {
        if (fields[0].equals("load")) {
            return game.load(fields[1], Integer.parseInt(fields[2]), fields[3], false);
        }
        List<String> turns = new ArrayList<>();
        for (String field : fields) {
            turns.add(turn(field.substring(1), field.charAt(0) == '+'));
        }
        return String.join("\u001e", turns);
    }

    private String turn(String command, boolean listed) throws Exception {
        String observation;
        try {
            observation = game.step(command);
        } catch (Exception | StackOverflowError e) {
            observation = "raised: " + e;
        }
        java.util.Random random = scala.util.Random$.MODULE$.self();
        Field field = java.util.Random.class.getDeclaredField("seed");
        field.setAccessible(true);
        long seed = ((AtomicLong) field.get(random)).get();
        String valid = "";
        if (listed) {
            valid = String.join("\n", new TreeSet<>(game.getValidActionObjectCombinations()));
            random.setSeed(seed ^ SCRAMBLED); // the list draws from it
        }
        return String.join(
                "\u001f",
                observation,
                Double.toString(game.getScore()),
                Boolean.toString(game.getCompleted()),
                game.getNumMoves().toString(),
                game.getGoalProgressStr(),
                Long.toString(seed),
                valid);
    }
}
