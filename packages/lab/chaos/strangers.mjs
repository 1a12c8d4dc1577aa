/**
 * Strangers at the ports of a cluster, in a process of their own: `node strangers.mjs SETTINGS`. They send noise, half of what
 * they should, nothing at all, proofs made with a wrong secret, and again what somebody else has sent before. It ends
 * after its time and reports what became of them.
 */
import { connect } from 'node:net';
import { CALLER, Handshake, REFUSAL } from 'tram-multicast/internal/memory/machines/handshake.js';
import { Random } from '../dist/sim/random.js';

/**
 * @typedef {object} StrangersSettings
 * @property {number} seed
 * @property {number} seconds
 * @property {readonly Port[]} ports  that hosts listen at
 * @property {readonly Port[]} webPorts  where they tell how they are
 * @property {number} perSecond   at each port
 * @property {string} secret      the right one, as hexadecimal digits: for what is overheard
 * @property {string} digest      of the configuration, likewise
 */

/** @typedef {{ host: string, port: number }} Port */

/**
 * @typedef {object} StrangersReport
 * @property {Record<string, number>} counts  of strangers, by kind
 * @property {Record<string, number>} refusals  by what they were told
 * @property {string[]} breaches  who was let in and should not have been
 */

/** A request as the provider `tcp` makes it: version, kind, how much data follows; what it is to the peer. */
const HEAD = Buffer.from('0300000000000000000000000000000000000000000000000100000000000000', 'hex');
const HEAD_KIND = 1;
const HEAD_LENGTH = 2;
const ACCEPTED = 1;
const NOISE_BYTES_MAX = 4096;
const DATA_BYTES_MAX = 0xffff;
/** How long one stays that does not say all that it should. */
const LINGER_MS = { least: 10, most: 4000 };
const OPEN_MAX = 400;
const ANSWER_MS = 10_000;

/** @type {StrangersSettings} */
const settings = JSON.parse(process.argv[2]);
const random = new Random(settings.seed);
const secret = Buffer.from(settings.secret, 'hex');
const digest = Buffer.from(settings.digest, 'hex');
const right = new Handshake(secret, digest);
const wrong = new Handshake(bytes(secret.length), digest);
/** @type {StrangersReport} */
const report = { counts: {}, refusals: {}, breaches: [] };
let open = 0;

/** @type {Record<string, (port: Port, overheard: Uint8Array) => Promise<void>>} */
const KINDS = {
  noise: (port) => say(port, bytes(random.between(1, NOISE_BYTES_MAX))),
  'noise as a request': async (port) => judge('noise', await call(port, bytes(random.below(256)))),
  'more than it announced': (port) =>
    say(port, Buffer.concat([headFor(DATA_BYTES_MAX), bytes(NOISE_BYTES_MAX)])),
  'half a request': (port) => say(port, headFor(random.between(1, 256))),
  'a piece of a request': (port) => say(port, headFor(20).subarray(0, random.between(1, 31))),
  silence: (port) => say(port, Buffer.alloc(0)),
  'a hello and no more': async (port) => {
    await call(port, wrong.hello(anyHello()));
  },
  'a wrong proof': async (port) => judge('a wrong proof', await dial(port, wrong)),
  'a proof that was overheard': async (port, overheard) =>
    judge('a proof that was overheard', await call(port, overheard)),
  'a proof for another challenge': async (port, overheard) => {
    const answer = await answerFor(port, right);
    if (answer === undefined) return;
    const proof = Buffer.from(overheard.subarray(overheard.length - 16));
    const mixed = Buffer.concat([answer.subarray(0, answer.length - 16), proof]);
    judge('a proof for another challenge', await call(port, mixed));
  },
};

/** @type {Record<string, (port: Port) => Promise<void>>} */
const WEB_KINDS = {
  'noise over HTTP': (port) => say(port, bytes(random.between(1, NOISE_BYTES_MAX))),
  'half a request over HTTP': (port) => say(port, Buffer.from('GET /metrics HTTP/1.1\r\nHost: ')),
  'silence over HTTP': (port) => say(port, Buffer.alloc(0)),
};

await main();

async function main() {
  process.on('disconnect', () => process.exit(1));
  const overheard = await Promise.all(settings.ports.map(overhear));
  process.send?.({ what: 'begins' });
  const untilMs = Date.now() + settings.seconds * 1000;
  await Promise.all([
    ...settings.ports.map((port, place) => comeTo(port, KINDS, overheard[place], untilMs)),
    ...settings.webPorts.map((port) => comeTo(port, WEB_KINDS, new Uint8Array(0), untilMs)),
  ]);
  process.send?.({ what: 'done', ...report }, () => process.exit(0));
}

/** One after the other, however long those before take. @param {Port} port @param {typeof KINDS} kinds @param {Uint8Array} overheard @param {number} untilMs */
async function comeTo(port, kinds, overheard, untilMs) {
  const names = Object.keys(kinds);
  const under = new Set();
  while (Date.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 1000 / settings.perSecond));
    if (open >= OPEN_MAX) continue;
    const name = random.pick(names);
    report.counts[name] = (report.counts[name] ?? 0) + 1;
    const stranger = kinds[name](port, overheard).finally(() => under.delete(stranger));
    under.add(stranger);
  }
  await Promise.all(under);
}

/** What one who knows the secret has said when it was let in: as if it had been overheard. @param {Port} port */
async function overhear(port) {
  const answer = await answerFor(port, right);
  if (answer === undefined) throw new Error(`${port.host} did not ask for a proof`);
  const reply = await call(port, answer);
  if (reply?.kind !== ACCEPTED) throw new Error(`${port.host} did not let in who knows the secret`);
  return answer;
}

/** @param {Port} port @param {Handshake} handshake */
async function dial(port, handshake) {
  const answer = await answerFor(port, handshake);
  return answer === undefined ? undefined : await call(port, answer);
}

/** @param {Port} port @param {Handshake} handshake @returns {Promise<Uint8Array | undefined>} */
async function answerFor(port, handshake) {
  const hello = anyHello();
  const reply = await call(port, handshake.hello(hello));
  return reply === undefined ? undefined : handshake.answer(hello, reply.data);
}

/** Of one who only looks, so that nobody loses its place. */
function anyHello() {
  return right.newHello(CALLER.observer, 0, 0);
}

/** @param {string} who @param {{ kind: number, data: Uint8Array } | undefined} reply */
function judge(who, reply) {
  if (reply?.kind === ACCEPTED) report.breaches.push(`${who} was let in`);
  const code = reply === undefined ? 'ended' : (nameOf(reply.data[0]) ?? 'refused');
  report.refusals[code] = (report.refusals[code] ?? 0) + 1;
}

/** @param {number} code */
function nameOf(code) {
  return Object.entries(REFUSAL).find(([, value]) => value === code)?.[0];
}

/** Say this, and nothing more, for a while. @param {Port} port @param {Uint8Array} data */
function say(port, data) {
  return new Promise((resolve) => {
    const socket = knock(port, () => resolve(undefined));
    if (data.length > 0) socket.write(data);
    setTimeout(() => socket.destroy(), random.between(LINGER_MS.least, LINGER_MS.most));
  });
}

/**
 * A whole request, and what is answered; nothing if the connection ends without an answer.
 * @param {Port} port
 * @param {Uint8Array} data
 * @returns {Promise<{ kind: number, data: Uint8Array } | undefined>}
 */
function call(port, data) {
  return new Promise((resolve) => {
    let heard = Buffer.alloc(0);
    const replied = () => {
      if (heard.length < HEAD.length) return undefined;
      const length = heard.readUInt16BE(HEAD_LENGTH);
      if (heard.length < HEAD.length + length) return undefined;
      const reply = heard.subarray(HEAD.length, HEAD.length + length);
      return { kind: heard[HEAD_KIND], data: new Uint8Array(reply) };
    };
    const socket = knock(port, () => resolve(replied()));
    socket.on('data', (piece) => {
      heard = Buffer.concat([heard, piece]);
      if (replied() !== undefined) socket.destroy();
    });
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
    socket.write(Buffer.concat([headFor(data.length), data]));
  });
}

/** @param {Port} port @param {() => void} onEnd */
function knock(port, onEnd) {
  open++;
  const socket = connect(port).resume();
  // Being sent away is what strangers expect.
  socket.on('error', () => undefined);
  socket.on('close', () => {
    open--;
    onEnd();
  });
  return socket;
}

/** @param {number} length */
function headFor(length) {
  const head = Buffer.from(HEAD);
  head.writeUInt16BE(length, HEAD_LENGTH);
  return head;
}

/** @param {number} count */
function bytes(count) {
  return Buffer.from(Array.from({ length: count }, () => random.below(256)));
}
