# Circles of objects that nothing holds. It is healthy.
class Node
  attr_accessor :other

  def initialize = @data = "data " * 20
end

def step
  20_000.times do
    one, two = Node.new, Node.new
    one.other, two.other = two, one
  end
  GC.start
end

(ARGV[0] || 1).to_i.times { step }
puts "READY"
$stdout.flush
while $stdin.gets                # each line: one step more
  step
  puts "DONE"
  $stdout.flush
end
