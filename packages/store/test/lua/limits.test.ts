/** What scripts must not be able to do: escape, take forever, end the replica, or see where the stack of JavaScript ends. */

import { expect, test } from 'vitest';
import { ErrorReply, type Reply } from '../../src/resp/reply.js';
import { EngineTarget } from '../differential/engine-target.js';

const TOO_LONG = /^ERR Script was stopped because it took too long/;

function run(script: string): Reply {
  const reply = new EngineTarget().reply(['EVAL', script, '0']);
  return reply instanceof ErrorReply ? reply.message : reply;
}

test.for([
  [
    'words of JavaScript',
    'local var, await, this, t, va = 1, 2, 3, 4, 5 return var+await+this+t+va',
    15,
  ],
  ['names of the runtime', 'local S, L, R, enter, fn = 1, 2, 3, 4, 5 return S+L+R+enter+fn', 15],
  ['names of prototypes', 'local __proto__, constructor = 1, 2 return __proto__ + constructor', 3],
  [
    'fields of prototypes',
    'local t = {} return {type(t.__proto__), type(t.constructor)}',
    ['nil', 'nil'],
  ],
  [
    'a field __proto__',
    'local t = {__proto__ = {x = 1}} return tostring(t.x) .. t.__proto__.x',
    'nil1',
  ],
  ['keys of JSON', `return type(cjson.decode('{"__proto__":{"x":1}}').x)`, 'nil'],
  ['methods of strings', 'return type((""):len().constructor)', /attempt to index/],
  ['fields of functions', 'return tostring(tostring.constructor)', /attempt to index/],
  ['unknown globals', 'return process', /nonexistent global variable 'process'/],
  ['commands', 'return redis.pcall("constructor").err', /^ERR Unknown/],
  [
    'quotes and escapes',
    'return "\\"\\\\\\0\\226\\128\\168`$1\\n<!--"',
    '"\\\0\xe2\x80\xa8`$1\n<!--',
  ],
  [
    'code in loaded strings',
    'return loadstring([[return "*/`;process.exit()//"]])()',
    '*/`;process.exit()//',
  ],
  [
    'huge numbers',
    'return tostring(-1e999) .. tostring(0xffffffffffffffffffff)',
    '-inf1.2089258196146e+24',
  ],
] as const)('a script does not escape through %s', ([, script, expected]) => {
  const reply = run(script);
  if (expected instanceof RegExp) expect(reply).toMatch(expected);
  else expect(reply).toEqual(expected);
});

const MEGABYTE = 'local s = ("a"):rep(1000000) ';
const FULL = 'local t = {} for i = 1, 7999 do t[i] = i end ';

test.for([
  ['after rep has failed', 'pcall(string.rep, "", math.huge) while true do end'],
  ['after remove at NaN', 'pcall(table.remove, {1}, 0/0) while true do end'],
  ['insert far before', 'table.insert({}, -1e15, 1)'],
  [
    'spaces that are no number',
    'local s = "x" .. (" "):rep(200000) .. "x" while true do tonumber(s) end',
  ],
  ['digits that are no number', 'local s = ("1"):rep(200000) .. "x" while true do tonumber(s) end'],
  ['a needle that is almost everywhere', `${MEGABYTE} while true do s:find("b" .. s, 1, true) end`],
  ['a long set', 'return ("b"):rep(100000):find("[" .. ("a"):rep(100000) .. "]")'],
  ['references to a long capture', `${MEGABYTE} while true do s:find("^(a*)%1c") end`],
  ['exponential patterns', 'return (("a"):rep(40)):find(("a-"):rep(40) .. "b")'],
  ['unpack', `${FULL} while true do unpack(t) end`],
  [
    'lists of values',
    `${FULL} local function f(...) while true do local a, b = 1, ... end end f(unpack(t))`,
  ],
  ['maxn', `${FULL} while true do table.maxn(t) end`],
  ['foreach', `${FULL} while true do table.foreach(t, type) end`],
  ['concat', `${MEGABYTE} while true do table.concat({s, s, s, s}) end`],
  ['cmsgpack', `${MEGABYTE} while true do cmsgpack.pack({s, s, s, s}) end`],
  ['replacements', `${MEGABYTE} while true do local _ = ("x"):rep(100):gsub("x", s) end`],
  [
    'comparisons',
    `${MEGABYTE} local r = ("a"):rep(1000000) while true do local x = s == r or s < r end`,
  ],
  ['long keys', `${MEGABYTE} local t, i = {}, 0 while true do i = i + 1 t[s .. i] = 1 end`],
  [
    'empty slots',
    `local t = {} for i = 1, 1e5 do t[i + 0.5] = 1 end for i = 1, 1e5 do t[i + 0.5] = nil end while true do next(t) end`,
  ],
  ['replies', 'local t = {} for i = 1, 40 do t = {t, t} end return t'],
  ['replies of maps', 'local t = {} for i = 1, 40 do t = {map = {a = t, b = t}} end return t'],
  ['strings in replies', `${MEGABYTE} local t = {} for i = 1, 5000 do t[i] = s end return t`],
  [
    'tables in many places',
    'local t = {} for i = 1, 15 do t = {t, t, t, t, t, t, t, t} end return cmsgpack.pack(t)',
  ],
  [
    'cleared tables',
    'local t = {} for i = 1, 1e5 do t[i + 0.5] = 1 end for i = 1, 1e5 do t[i + 0.5] = nil end while true do cjson.encode(t) table.maxn(t) end',
  ],
  ['compiling', 'while true do loadstring("return 1") end'],
  ['compiling long chunks', 'local s = ("f()\\n"):rep(100000) while true do loadstring(s) end'],
  ['formats of struct', 'local f = ("x"):rep(100000) while true do struct.size(f) end'],
] as const)('a script that takes too long is stopped: %s', { timeout: 20_000 }, ([, script]) => {
  expect(run(script)).toMatch(TOO_LONG);
});

test.for([
  ['many arguments', 'return type(loadstring("return f(" .. ("1,"):rep(70000) .. "1)"))'],
  [
    'many parameters',
    'return type(loadstring("return function(" .. ("a,"):rep(70000) .. "a) end"))',
  ],
  ['long chains', 'return type(loadstring("return a" .. (".b"):rep(20000)))'],
  ['many cases', 'return type(loadstring("if a then" .. (" elseif b then"):rep(20000) .. " end"))'],
  [
    'many operators',
    'local s = "1" for i = 1, 60 do s = "(" .. s .. ("+1"):rep(400) .. ")" end return type(loadstring("return " .. s))',
  ],
] as const)('what is too complex for JavaScript is a syntax error: %s', ([, script]) => {
  expect(run(script)).toBe('nil');
});

const LINES = '\n'.repeat(2 ** 20);

test.for([
  ['a script', `${LINES}return 1`, /compiling script.*more than 1048576 bytes/],
  ['a long string', `return "${'a'.repeat(2 ** 20)}"`, /compiling script.*more than 1048576 bytes/],
  [
    'a loaded string',
    'local _, problem = loadstring(("\\n"):rep(2 ^ 20 + 1), "=x") return problem',
    'x: chunk has more than 1048576 bytes',
  ],
  ['the first line', `#!${'a'.repeat(5000)}\nreturn 1`, 'ERR Invalid script shebang'],
] as const)('%s may not be too long', ([, script, expected]) => {
  const reply = run(script);
  if (expected instanceof RegExp) expect(reply).toMatch(expected);
  else expect(reply).toEqual(expected);
});

test('lines are counted through many line ends', () => {
  expect(run(`${'\r\n'.repeat(400_000)}return nil + 1`)).toMatch(/user_script:400001:/);
});

test.for([
  [
    'tostring',
    'local t = setmetatable({}, {__tostring = tostring}) return tostring(t)',
    /stack overflow/,
  ],
  ['pcall', 'local t = setmetatable({}, {__call = pcall}) return #{t()}', 201],
  [
    'foreach',
    'local t = {} t[t] = table.foreach table.foreach(t, table.foreach)',
    /stack overflow/,
  ],
  [
    'many variables',
    `local function f(n) ${'local a = n '.repeat(190)} return f(n + 1) + a end f(1)`,
    /stack overflow/,
  ],
  [
    'many values',
    `${FULL} local function f(...) return f(...), 1 end f(unpack(t))`,
    /stack overflow/,
  ],
  ['cmsgpack', 'return cmsgpack.unpack(("\\145"):rep(100000))', /Too many nested/],
  ['bytes', 'return {string.byte(("x"):rep(1000000), 1, -1)}', /string slice too long/],
  ['a long string of JSON', `return #cjson.decode('"' .. ("a"):rep(20000000) .. '"')`, 20000000],
  ['a negative size', 'return struct.unpack("bc0i", "\\251aaaaaaaa")', /data string too short/],
  ['many digits', 'return #string.format("%.99g", 0.0001)', 68],
  [
    'the bits of NaN',
    'return struct.pack(">fd", 0/0, -(0/0)) .. cmsgpack.pack(0/0)',
    `\xff\xc0\0\0${'\xff\xf8\0\0\0\0\0\0'}\xcb${'\xff\xf8\0\0\0\0\0\0'}`,
  ],
] as const)('our limits come before those of JavaScript: %s', ([, script, expected]) => {
  const reply = run(script);
  if (expected instanceof RegExp) expect(reply).toMatch(expected);
  else expect(reply).toBe(expected);
});
