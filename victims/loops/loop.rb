# As loop.lua.
def item(number) = ("a" * (100 + number % 50)) + number.to_s
class Shelf
  def initialize = @items = {}
  def add(number)
    @items[number % 64] = { name: item(number), values: (0..number % 20).map { |value| value.to_s * 30 } }
  end
end
SHELF = Shelf.new
def deep(depth, number) = depth > 0 ? 1 + deep(depth - 1, number) : SHELF.add(number).size
ARGV[0].to_i.times do |number|
  deep(number % 40, number)
  SHELF.add(number)
end
