/** What clients send that mean no good, or do not know better. Each attack has a connection, and may leave it as it likes. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** @typedef {import('node:net').Socket} Socket */
/** @typedef {import('../random.mjs').Random} Random */

/** Enough to be mistaken for requests now and then. */
const ALPHABET = '*$123\r\n -"\'GETgetoMULTIEXEC\\';
const HALF_OPEN_MS = 2000;

/** Text of a request. @param {...string} words */
function request(...words) {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** @type {Record<string, (socket: Socket, random: Random) => Promise<unknown>>} */
export const ATTACKS = {
  'random bytes': async (socket, random) => {
    const bytes = Buffer.alloc(random.integer(1, 5000));
    const isText = random.chance(0.5);
    for (let i = 0; i < bytes.length; i++) {
      bytes[i] = isText ? random.pick([...ALPHABET]).charCodeAt(0) : random.integer(0, 255);
    }
    socket.write(bytes);
    if (random.chance(0.5)) await readUntilEnd(socket);
  },

  'half requests': async (socket, random) => {
    const whole = request(
      'SET',
      `half${random.integer(0, 9)}`,
      'x'.repeat(random.integer(0, 3000)),
    );
    socket.write(whole.slice(0, random.integer(1, whole.length - 1)));
    if (random.chance(0.5)) await sleep(random.integer(0, HALF_OPEN_MS));
    else await readUntilEnd(socket);
  },

  'huge lengths': async (socket, random) => {
    const start = random.pick([
      '*2147483647\r\n',
      '*1000000\r\n',
      '*-5\r\n*99999999999999999999\r\n',
      '*2\r\n$3\r\nGET\r\n$536870912\r\n',
      '*2\r\n$3\r\nGET\r\n$9999999999\r\n',
      '*1\r\n$-1\r\n',
      '*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4294967296\r\n',
      '$',
      '',
    ]);
    const more = random.pick(['', '$1\r\na\r\n'.repeat(20_000), '1'.repeat(1_000_000)]);
    socket.write(start + more);
    await sleep(random.integer(0, HALF_OPEN_MS));
  },

  'deep nesting': async (socket, random) => {
    const depth = random.integer(1000, 100_000);
    const [arrays, tables] = ['['.repeat(depth), '{'.repeat(depth)];
    const script = random.pick([
      `return cjson.decode('${arrays}')`,
      `return ${tables}${'}'.repeat(depth)}`,
      `return ${'('.repeat(depth)}1${')'.repeat(depth)}`,
      `return cmsgpack.unpack(('\\145'):rep(${depth}))`,
      `local t = {} for i = 1, ${depth} do t = {t} end return t`,
      `local t = {} for i = 1, ${depth} do t = {t} end return cjson.encode(t)`,
      'local function f() return 1 + f() end return f()',
    ]);
    const text = random.pick([
      '*1\r\n'.repeat(depth),
      request('EVAL', script, '0'),
      request('EVAL', script, '1', `key${random.integer(0, 9)}`),
      request('MULTI').repeat(1000),
      request('KEYS', '*?'.repeat(500)),
      request('HELLO', '3').repeat(1000),
    ]);
    socket.write(text);
    socket.end();
    await readUntilEnd(socket);
  },

  'wrong commands': async (socket, random) => {
    const words = [
      '',
      '-1',
      '0',
      'x',
      '1e400',
      '(',
      '{a}',
      '\xff',
      'WITHSCORES',
      '9223372036854775808',
    ];
    const names = ['GET', 'SET', 'ZADD', 'XADD', 'EVAL', 'SORT', 'NOPE', 'EXEC', 'LMPOP', 'GEOADD'];
    const several = Array.from({ length: 500 }, () => {
      const args = Array.from({ length: random.integer(0, 5) }, () => random.pick(words));
      return request(random.pick(names), ...args);
    });
    socket.end(several.join(''));
    await readUntilEnd(socket);
  },

  'replies that nobody reads': async (socket) => {
    socket.pause();
    const value = 'x'.repeat(1_000_000);
    socket.write(request('SET', 'unread', value) + request('GET', 'unread').repeat(500));
    await sleep(HALF_OPEN_MS);
  },

  'sessions that are left': async (socket, random) => {
    const start = random.pick([
      request('MULTI') + request('SET', 'left', 'x'.repeat(1000)).repeat(500),
      request('SUBSCRIBE', 'left', 'and', 'right') + request('GET', 'a'),
      request('BLPOP', 'nothing', 'nowhere', '0').repeat(10),
      request('WATCH', 'a', 'b', 'c') + request('MULTI'),
      request('CLIENT', 'REPLY', 'OFF') + request('SET', 'left', 'x').repeat(1000),
      request('XREAD', 'BLOCK', '0', 'STREAMS', 'nothing', 'nowhere', '$', '$'),
    ]);
    socket.write(start);
    await sleep(random.integer(0, 200));
  },
};

/** Attacks again and again. @param {string} name @param {string} path @param {Random} random @param {() => boolean} isOver */
export async function attack(name, path, random, isOver) {
  let count = 0;
  for (; !isOver(); count++) {
    const socket = connect(path);
    socket.on('error', () => undefined);
    await ATTACKS[name](socket, random);
    socket.destroy();
    await sleep(random.integer(0, 10));
  }
  return count;
}

/** @param {Socket} socket */
async function readUntilEnd(socket) {
  socket.resume();
  await Promise.race([once(socket, 'close'), sleep(HALF_OPEN_MS)]);
}

/** Connections that say nothing. @param {number} port @param {number} count */
export async function connectIdle(port, count) {
  /** @type {Socket[]} */
  const sockets = [];
  for (let left = count; left > 0; left -= 100) {
    const some = Array.from({ length: Math.min(left, 100) }, () => connect(port, '127.0.0.1'));
    await Promise.all(some.map((socket) => once(socket, 'connect')));
    for (const socket of some) socket.on('error', () => undefined).resume();
    sockets.push(...some);
  }
  return sockets;
}
