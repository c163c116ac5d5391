# A cache of a fixed size. It is healthy.
class Lru
  def initialize(most) = (@most, @items = most, {})

  def put(key, value)
    @items[key] = value
    @items.shift if @items.size > @most
  end
end

LRU = Lru.new(2_000)
$number = 0

def step
  10_000.times { LRU.put("key #{$number += 1}", "value #{$number} " * 8) }
end

(ARGV[0] || 1).to_i.times { step }
puts "READY"
$stdout.flush
while $stdin.gets                # each line: one step more
  step
  puts "DONE"
  $stdout.flush
end
