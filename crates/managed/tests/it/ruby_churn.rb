# Allocates, collects, and resizes what it holds, without end. 5,000 objects stay.
class Kept
  def initialize(number) = (@number, @text = number, "kept #{number}")
end

KEPT = Array.new(5_000) { |number| Kept.new(number) }
puts "READY"
$stdout.flush
loop do
  table, list = {}, []
  3_000.times do |number|
    table["key #{number}"] = [number, number.to_s]
    list << table
    list.shift if list.size > 100
    Object.new.instance_variable_set(:"@v#{number % 50}", number)
  end
  GC.start if rand < 0.1
end
