/**
 * Unauthenticated peers at the ports of a cluster, in a process of their own: `node unauthenticated.mjs SETTINGS`. Started by
 * `unauthenticated-round.mjs`. They send noise, incomplete requests, nothing at all, proofs made with a wrong secret, and
 * replays of accepted proofs. After its time, the process reports how the hosts answered, and its parent ends it.
 */
import { connect } from 'node:net';
import { CALLER, Handshake, REFUSAL } from 'tram-multicast/internal/memory/machines/handshake.js';
import { endWithParent } from '../dist/bench/load/end-with-parent.js';
import { Random } from '../dist/sim/random.js';

/**
 * @typedef {object} UnauthenticatedSettings
 * @property {number} seed
 * @property {number} seconds
 * @property {readonly Port[]} ports  at which hosts listen for members and clients
 * @property {readonly Port[]} webPorts  at which they serve health and metrics over HTTP
 * @property {number} perSecond   calls at each port
 * @property {string} secret      the right one in hexadecimal digits, to record proofs that are replayed later
 * @property {string} digest      of the configuration, in hexadecimal digits
 */

/** @typedef {{ host: string, port: number }} Port */

/**
 * @typedef {object} UnauthenticatedReport
 * @property {Record<string, number>} counts  of calls, by kind
 * @property {Record<string, number>} refusals  by reason
 * @property {string[]} breaches  calls that a host wrongly accepted
 */

/** The header of a request of the provider `tcp`: version, kind, length of the data that follows. */
const HEAD = Buffer.from('0300000000000000000000000000000000000000000000000100000000000000', 'hex');
const HEAD_KIND = 1;
const HEAD_LENGTH = 2;
const ACCEPTED = 1;
const NOISE_BYTES_MAX = 4096;
const DATA_BYTES_MAX = 0xffff;
/** How long an incomplete request stays open. */
const LINGER_MS = { least: 10, most: 4000 };
const OPEN_MAX = 400;
const ANSWER_MS = 10_000;

/** @type {UnauthenticatedSettings} */
const settings = JSON.parse(process.argv[2]);
const random = new Random(settings.seed);
const secret = Buffer.from(settings.secret, 'hex');
const digest = Buffer.from(settings.digest, 'hex');
const right = new Handshake(secret, digest);
const wrong = new Handshake(bytes(secret.length), digest);
/** @type {UnauthenticatedReport} */
const report = { counts: {}, refusals: {}, breaches: [] };
let open = 0;

/** @type {Record<string, (port: Port, recorded: Uint8Array) => Promise<void>>} */
const KINDS = {
  noise: (port) => sendOnly(port, bytes(random.between(1, NOISE_BYTES_MAX))),
  'noise as a request': async (port) => judge('noise', await call(port, bytes(random.below(256)))),
  'more than announced': (port) =>
    sendOnly(port, Buffer.concat([headFor(DATA_BYTES_MAX), bytes(NOISE_BYTES_MAX)])),
  'half a request': (port) => sendOnly(port, headFor(random.between(1, 256))),
  'a partial header': (port) => sendOnly(port, headFor(20).subarray(0, random.between(1, 31))),
  silence: (port) => sendOnly(port, Buffer.alloc(0)),
  'a hello without an answer': async (port) => {
    await call(port, wrong.hello(anyHello()));
  },
  'a wrong proof': async (port) => judge('a wrong proof', await dial(port, wrong)),
  'a replayed proof': async (port, recorded) =>
    judge('a replayed proof', await call(port, recorded)),
  'a proof for another challenge': async (port, recorded) => {
    const answer = await answerFor(port, right);
    if (answer === undefined) return;
    const proof = Buffer.from(recorded.subarray(recorded.length - 16));
    const mixed = Buffer.concat([answer.subarray(0, answer.length - 16), proof]);
    judge('a proof for another challenge', await call(port, mixed));
  },
};

/** @type {Record<string, (port: Port) => Promise<void>>} */
const WEB_KINDS = {
  'noise over HTTP': (port) => sendOnly(port, bytes(random.between(1, NOISE_BYTES_MAX))),
  'half a request over HTTP': (port) =>
    sendOnly(port, Buffer.from('GET /metrics HTTP/1.1\r\nHost: ')),
  'silence over HTTP': (port) => sendOnly(port, Buffer.alloc(0)),
};

await main();

async function main() {
  endWithParent();
  const recorded = await Promise.all(settings.ports.map(recordHandshake));
  process.send?.({ what: 'begins' });
  const untilMs = Date.now() + settings.seconds * 1000;
  await Promise.all([
    ...settings.ports.map((port, place) => callPort(port, KINDS, recorded[place], untilMs)),
    ...settings.webPorts.map((port) => callPort(port, WEB_KINDS, new Uint8Array(0), untilMs)),
  ]);
  process.send?.({ what: 'done', ...report }, () => undefined);
}

/** Makes calls at a constant rate, without waiting for earlier ones. @param {Port} port @param {typeof KINDS} kinds @param {Uint8Array} recorded @param {number} untilMs */
async function callPort(port, kinds, recorded, untilMs) {
  const names = Object.keys(kinds);
  const inFlight = new Set();
  while (Date.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 1000 / settings.perSecond));
    if (open >= OPEN_MAX) continue;
    const name = random.pick(names);
    report.counts[name] = (report.counts[name] ?? 0) + 1;
    const peer = kinds[name](port, recorded).finally(() => inFlight.delete(peer));
    inFlight.add(peer);
  }
  await Promise.all(inFlight);
}

/** Makes one valid handshake and returns its proof, as an eavesdropper records it. @param {Port} port */
async function recordHandshake(port) {
  const answer = await answerFor(port, right);
  if (answer === undefined) throw new Error(`${port.host} did not ask for a proof`);
  const reply = await call(port, answer);
  if (reply?.kind !== ACCEPTED) throw new Error(`${port.host} refused a valid proof`);
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
  return reply === undefined
    ? undefined
    : handshake.answer(hello, reply.data, settings.ports.indexOf(port));
}

/** The hello of an observer, which takes no slot from members or clients. */
function anyHello() {
  return right.newHello({ caller: CALLER.observer, number: 0, session: 0, birth: 0, seenBirth: 0 });
}

/** @param {string} who @param {{ kind: number, data: Uint8Array } | undefined} reply */
function judge(who, reply) {
  if (reply?.kind === ACCEPTED) report.breaches.push(`${who} was accepted`);
  const code = reply === undefined ? 'ended' : (nameOf(reply.data[0]) ?? 'refused');
  report.refusals[code] = (report.refusals[code] ?? 0) + 1;
}

/** @param {number} code */
function nameOf(code) {
  return Object.entries(REFUSAL).find(([, value]) => value === code)?.[0];
}

/** Sends data and nothing more, and stays connected for a while. @param {Port} port @param {Uint8Array} data */
function sendOnly(port, data) {
  return new Promise((resolve) => {
    const socket = connectTo(port, () => resolve(undefined));
    if (data.length > 0) socket.write(data);
    setTimeout(() => socket.destroy(), random.between(LINGER_MS.least, LINGER_MS.most));
  });
}

/**
 * Sends a complete request and returns the answer; nothing if the connection ends without one.
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
    const socket = connectTo(port, () => resolve(replied()));
    socket.on('data', (piece) => {
      heard = Buffer.concat([heard, piece]);
      if (replied() !== undefined) socket.destroy();
    });
    socket.setTimeout(ANSWER_MS, () => socket.destroy());
    socket.write(Buffer.concat([headFor(data.length), data]));
  });
}

/** @param {Port} port @param {() => void} onEnd */
function connectTo(port, onEnd) {
  open++;
  const socket = connect(port).resume();
  // Hosts are expected to close the connection.
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
