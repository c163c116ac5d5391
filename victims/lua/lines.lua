-- Allocates tables whose sizes stand for the allocating function and line, as the program itself
-- finds them (`debug.getinfo`): the name from the call, else the line where the function begins.
-- At the end FILE (the first argument) gets the meaning of each size, and the number of its blocks.
--
-- TABLE(i) is written out before the program runs: a constructor of so many values, whose array has
-- 16 bytes for each; LuaJIT, which does not take its own blocks from the C library, calls `malloc`.
--
-- With VICTIM_WAITS=1 it says so and waits for a line first, during which it is attached to.
if not TOLD then
    TOLD = {}
    local is_luajit = jit ~= nil
    if is_luajit then
        jit.off()
        C = require("ffi").C
        require("ffi").cdef("void *malloc(size_t); void free(void *);")
    end
    -- (Of the numbers of values that all versions write down exactly.)
    local function values(number)
        return (9 + number % 7) * 2 ^ (5 + math.floor(number / 7))
    end
    function size(number)
        local bytes = values(number) * 16
        local place = debug.getinfo(2, "Sln")
        local entry = TOLD[bytes]
        if not entry then
            local file = place.source:sub(2)
            local name = ("function <%s:%d>"):format(file, place.linedefined)
            if place.what == "main" then name = "main chunk" end
            -- (What the language calls by itself, for an operator, has no name of the program's.)
            if place.name and place.namewhat ~= "metamethod" and not is_luajit then name = place.name end
            entry = { name = name, file = file, line = place.currentline, blocks = 0 }
            TOLD[bytes] = entry
        end
        entry.blocks = entry.blocks + 1
    end
    local text = io.open(arg[0]):read("*a")
    text = text:gsub("TABLE%((%d+)%)", function(number)
        local count = values(tonumber(number))
        if is_luajit then return ("C.free(C.malloc(%d))"):format(count * 16) end
        return "local t = {" .. ("nil,"):rep(count) .. "}"
    end)
    text = text:gsub("INNER%((%d+)%)", function(number)
        local count = values(tonumber(number))
        if is_luajit then return ("C.free(C.malloc(%d))"):format(count * 16) end
        return "{" .. ("nil,"):rep(count) .. "}"
    end)
    return assert((loadstring or load)(text, "@" .. arg[0]))()
end

local function plain()
    size(0) TABLE(0)
end

local Maker = {}
Maker.__index = function(self, key)
    size(1) TABLE(1)
    return rawget(Maker, key)
end
Maker.__add = function(a, b)
    size(2) TABLE(2)
    return a
end
function Maker.work(self, ...)
    local count = select("#", ...)
    size(3) TABLE(3)
    return count
end

local function deep(depth)
    if depth > 0 then return deep(depth - 1) + 1 end
    size(4) TABLE(4)
    return 0
end

local function last(depth)
    if depth > 0 then return last(depth - 1) end
    size(5) TABLE(5)
end

local function caught()
    pcall(function()
        size(6) TABLE(6)
        error("caught")
    end)
    size(7) TABLE(7)
end

local function values(first)
    local thread = coroutine.wrap(function(value)
        for number = 1, 3 do
            size(8) TABLE(8)
            coroutine.yield(value + number)
        end
        local inner = coroutine.wrap(function()
            size(9) TABLE(9)
            coroutine.yield()
            plain()
        end)
        inner()
        inner()
    end)
    for _ = 1, 4 do
        thread(first)
        size(10) TABLE(10)
    end
end

local function each(count)
    local function step(limit, number)
        size(11) TABLE(11)
        if number < limit then return number + 1 end
    end
    for number in step, count, 0 do
        if number == 2 then
            size(12) TABLE(12)
        end
    end
end

local function sorted()
    local list = { 3, 1, 2 }
    table.sort(list, function(a, b)
        size(13) TABLE(13)
        return a < b
    end)
    ;("a b"):gsub("%a", function()
        size(14) TABLE(14)
    end)
end

-- (Two instructions in a row that make a table.)
local function nested()
    local t = {
        [1] = INNER(17) }; size(17)
end

local made = assert((loadstring or load)("return function()\n  return 1\nend", "=made"))()

local function work(rounds)
    local maker = setmetatable({}, Maker)
    for round = 1, rounds do
        plain()
        maker:work(1, 2, nil)
        local _ = maker + maker
        deep(round % 40)
        last(1 + round % 3)
        caught()
        values(round)
        each(3)
        sorted()
        made()
        nested()
        size(15) TABLE(15)
    end
end

if os.getenv("VICTIM_WAITS") then
    print("waits")
    io.stdout:flush()
    io.read()
end
work(100)
for _ = 1, 10 do
    size(16) TABLE(16)
end
local out = assert(io.open(arg[1], "w"))
for bytes, entry in pairs(TOLD) do
    out:write(('{"bytes":%d,"function":"%s","file":"%s","line":%d,"blocks":%d}\n'):format(
        bytes, entry.name, entry.file, entry.line, entry.blocks))
end
out:close()
