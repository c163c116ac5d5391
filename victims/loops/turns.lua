-- Functions that return and are called again from other lines, at other depths, through others, and as newly made code.
local k = {}
local load = loadstring or load
local function leaf(n) return ("x"):rep(200 + n % 7) end
local a, b
function a(d, n) if d == 0 then k[n % 50] = { leaf(n), n }; return 1 end
  if n % 2 == 0 then local v = a(d - 1, n); return v end
  if d % 3 == 0 then return b(d - 1, n) end
  local ok, v = pcall(a, d - 1, n)
  return v end
function b(d, n) if d == 0 then k[n % 50] = { x = leaf(n) }; return 1 end
  local f = function(x, y) local v = a(x, y); return v end
  if n % 3 == 0 then return f(d - 1, n) end
  local v = f(d - 1, n)
  return tostring(v):sub(1, 3) .. leaf(n) end
for n = 1, tonumber(arg[1]) do
  a(n % 17, n); b(n % 13, n)
  local co = coroutine.wrap(function(x) a(3, x); coroutine.yield({ leaf(x) }); b(4, x); local inner = coroutine.wrap(function() a(2, x); return {} end); inner() end)
  co(n); a(2, n); co()
  k.e = load("return ('y'):rep(300) .. ({...})[1]")(n % 9)
  k.e = load("\nreturn\n('y'):rep(300) .. ({...})[1]")(n % 9)
  local t = { 3, 1, 2, n }
  table.sort(t, function(p, q) return leaf(p) .. p < leaf(q) .. q end)
  string.gsub("abc", ".", function(c) return c .. leaf(n) end)
end
