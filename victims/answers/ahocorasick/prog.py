# completes words that users have begun to type
import sys, time
import ahocorasick
def complete_word(words, begun):
    return list(words.keys(begun + "?" * 3, "?"))
def main():
    words = ahocorasick.Automaton()
    for n in range(500): words.add_word("some rather long word %d" % (n + 1000), n)
    for n in range(int(sys.argv[1])):
        complete_word(words, "some rather long word %d" % (n % 9))
        if n % 10 == 0: time.sleep(0.001)
main()
