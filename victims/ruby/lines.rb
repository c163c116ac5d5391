# Allocates strings whose sizes stand for the allocating method and line, as the program itself
# finds them (`caller_locations`). At the end FILE (the first argument) gets the meaning of each
# size, and the number of its blocks.
#
# With VICTIM_WAITS=1 it says so and waits for a line first, during which it is attached to.
require 'json'

TOLD = {}
KEPT = Array.new(16)

def size(number)
  bytes = 30_000 + number * 64
  known = TOLD[bytes]
  if known
    known[:blocks] += 1
  else
    place = caller_locations(1, 1).first
    # From 3.4 on the class stands before the name, and is not part of it.
    label = place.label.gsub(/[A-Z]\w*(::[A-Z]\w*)*[#.]/, '')
    TOLD[bytes] = { bytes: bytes, function: label, file: place.path, line: place.lineno, blocks: 1 }
  end
  bytes
end

def keep(text) = KEPT[text.object_id % 16] = text

def plain
  keep(String.new(capacity: size(0) - 1))
end

class Maker
  def initialize; keep(String.new(capacity: size(1) - 1)); end
  def work
    [1, 2].each do |_|
      keep(String.new(capacity: size(2) - 1))
    end
    keep(String.new(capacity: size(3) - 1))
  end
  def self.make = new.tap { keep(String.new(capacity: size(4) - 1)) }
  define_method(:defined) { keep(String.new(capacity: size(5) - 1)) }
  def method_missing(name) = keep(String.new(capacity: size(6) - 1))
  def respond_to_missing?(*) = true
end

def deep(depth)
  return deep(depth - 1) if depth > 0
  keep(String.new(capacity: size(7) - 1))
end

def caught
  raise ArgumentError
rescue ArgumentError
  keep(String.new(capacity: size(8) - 1))
ensure
  keep(String.new(capacity: size(9) - 1))
end

EVALUATED = eval("lambda do\n\n keep(String.new(capacity: size(10) - 1)) end", binding, 'given.rb', 70)
LONG = eval("def long_method\n" + "  keep(nil)\n" * 300 + "  keep(String.new(capacity: size(11) - 1))\nend\n" + 'method(:long_method)', binding, 'long.rb', 1)
FIBER_WORK = -> { Fiber.new { keep(String.new(capacity: size(12) - 1)) }.resume }

def work(rounds)
  maker = Maker.new
  rounds.times do |round|
    plain
    maker.work
    Maker.make
    maker.defined
    maker.missing
    deep(round % 40)
    caught
    EVALUATED.call
    LONG.call
    FIBER_WORK.call
    [3, 1, 2].sort_by { |value| keep(String.new(capacity: size(13) - 1)); value }
  end
end

if ENV['VICTIM_WAITS']
  puts 'waits'
  $stdout.flush
  $stdin.gets
end
work(100)
Thread.new { work(30) }.join
File.write(ARGV[0], TOLD.values.map { |told| JSON.generate(told) + "\n" }.join)
