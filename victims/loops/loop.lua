-- Calls, methods, coroutines and growing stacks, for a given number of rounds: the number of the
-- agent's system calls must not grow with it.
local function item(number) return ("a"):rep(100 + number % 50) .. number end
local Shelf = {}
Shelf.__index = Shelf
function Shelf:add(number)
    local values = {}
    for value = 0, number % 20 do values[value + 1] = value end
    self.items[number % 64] = { name = item(number), values = values }
end
local shelf = setmetatable({ items = {} }, Shelf)
local function deep(depth, number)
    if depth == 0 then return shelf:add(number) end
    deep(depth - 1, number)
    return depth
end
local thread = coroutine.wrap(function()
    for number = 1, math.huge do
        shelf:add(number)
        coroutine.yield()
    end
end)
for number = 1, tonumber(arg[1]) do
    deep(number % 40, number)
    thread()
    coroutine.wrap(function() shelf:add(number) end)()
end
