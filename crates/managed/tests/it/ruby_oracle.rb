# Objects of all kinds. After a line of input, all objects are dumped into the named file.
require "objspace"
require "set"

module Shop
  Line = Struct.new(:name, :price, :note, :cart)
  Wide = Struct.new(*(1..12).map { |number| :"f#{number}" })

  class Cart
    attr_reader :lines, :owner

    def initialize(number)
      @lines = []
      @owner = "owner #{number} " * 4
      @rate = 1.5 * number
      @numbers = [number]
      @by_number = { number => number.to_s }
    end
  end

  class Store
    @@all = {}
    CONFIG = { limit: 5, names: %w[a b c], "x" => 1 }
    @registry = Set.new

    class << self
      attr_reader :registry
    end

    def self.add(cart) = @@all[cart.owner] = cart
    define_method(:later) { |key| CONFIG[key] }
  end
end

class Late
  def initialize = 30.times { |number| instance_variable_set(:"@v#{number}", "v#{number} " * 20) }
end

class Alone
end

$sessions = []
1_000.times do |number|
  cart = Shop::Cart.new(number)
  cart.lines << Shop::Line.new("line #{number}", number, nil, cart)
  Shop::Store.add(cart)
  Shop::Store.registry << cart
end
$sessions << Late.new << Shop::Wide.new(*(1..12).map(&:to_s))
[+"with variables", [1, 2]].each do |object|
  object.instance_variable_set(:@tag, Object.new)
  $sessions << object
end
local = (1..500).map { |number| "local #{number} " * 8 }
block = proc { |number| local.size + number }
$each = [1, 2, 3].each
$each.next
$ready = Queue.new
Thread.new do
  Thread.current[:context] = ["thread data"] * 3
  $ready << true
  sleep
end
$ready.pop
$fiber = Fiber.new do
  kept = Array.new(100) { |number| "fiber #{number} " * 5 }
  Fiber.yield
  kept
end
$fiber.resume
$numbers = [2**4000, Rational(1, 3), Complex(1, 2), /abc(def)?/.match("xabcdefx")]
single = Object.new
def single.hello = "hi"
$sessions << single << Class.new { def a = 1 }.new
$sessions << Object.const_get(:Alone).new
Object.send(:remove_const, :Alone)
5_000.times { |number| "garbage #{number} " * 3 }
GC.start
GC.disable
puts "READY"
$stdout.flush
$stdin.gets
File.open(ARGV[0], "w") { |file| ObjectSpace.dump_all(output: file) }
puts "DONE"
$stdout.flush
$stdin.gets
block.call(1)
