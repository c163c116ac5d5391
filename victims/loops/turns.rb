# As turns.lua.
K = {}
def leaf(n) = "x" * (200 + n % 7)
def a(d, n)
  if d == 0 then K[n % 50] = leaf(n); return 1 end
  return a(d - 1, n) if n & (1 << (d % 10)) != 0
  return b(d - 1, n) if d % 3 == 0
  [1].each { a(d - 1, n) }
  1
end
def b(d, n)
  if d == 0 then K[n % 50] = leaf(n); return 1 end
  f = ->(x, y) { a(x, y) }
  n.odd? ? f.call(d - 1, n) : (begin; a(d - 1, n); ensure; leaf(n); end)
end
ARGV[0].to_i.times do |n|
  a(n % 17, n); b(n % 13, n)
  fiber = Fiber.new { a(3, n); Fiber.yield leaf(n); b(4, n) }
  fiber.resume; a(2, n); fiber.resume
  f = eval("->(x) { 'y' * (300 + x) }"); K[:e] = f.call(n % 9)
  f = eval("\n->(x) {\n 'y' * (300 + x) }"); K[:e] = f.call(n % 9)
  [3, 1, 2, n].sort_by { |v| leaf(v) }
end
