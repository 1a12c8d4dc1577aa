/**
 * Who may come in. Whoever dials says who it is and is sent away with a challenge; it dials again with a proof that it
 * knows the cluster's secret, and is let in only then. The one that lets it in proves the same. Both prove it over fresh
 * values of both sides, so what somebody has overheard is of no use to him.
 *
 *   dialer → listener   hello: who I am, my nonce
 *   listener → dialer   challenge: its nonce, made of the hello, the time and a key that only it knows
 *   dialer → listener   the hello again, the challenge, proof
 *   listener → dialer   welcome: where and with which key its memory can be written, proof
 *
 * The listener remembers nothing between the two calls: thousands of hellos cost it nothing. It remembers the challenges
 * that were answered until they are too old, so that no answer counts twice. Messages have a fixed size, below the least
 * that a provider can carry with a connection (56 bytes).
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Who dials: a host of replicas, a client (with its slot, or without one as yet) or somebody who only looks. */
export const CALLER = { host: 1, newClient: 2, client: 3, observer: 4 } as const;

export interface Hello {
  readonly caller: number;
  /** The number of the host, or of a client's slot. */
  readonly number: number;
  /** Of a client that has a slot; of a host, 1 if it has ever run its replicas. */
  readonly session: number;
  readonly nonce: Uint8Array;
}

/** A caller that has proved that it knows the secret. */
export interface Proven {
  readonly hello: Hello;
  /** All that it said but the proof. */
  readonly said: Uint8Array;
}

export interface Welcome {
  readonly base: number;
  readonly keyLow: number;
  readonly keyHigh: number;
  /** What a new client is given. A host is told what we know of it, and whether we have run our replicas (`acquaintances.ts`). */
  readonly slot: number;
  readonly session: number;
}

/** Why a caller is sent away, the first byte of what it is told. */
export const REFUSAL = {
  challenge: 1,
  /** It speaks another version, or has another configuration. */
  otherCluster: 2,
  unknownCaller: 3,
  wrongProof: 4,
  noSlot: 5,
} as const;

/** What is wrong with a host that has refused us. */
export const REFUSALS: Readonly<Record<number, string>> = {
  [REFUSAL.otherCluster]: 'it has another configuration, or another version of TRAM',
  [REFUSAL.unknownCaller]: 'it does not know us',
  [REFUSAL.wrongProof]: 'it has another secret',
  [REFUSAL.noSlot]: 'all its client slots are taken',
};

/** What is wrong with somebody whom we have refused. */
export const REFUSED: Readonly<Record<number, string>> = {
  [REFUSAL.otherCluster]: 'it has another configuration or version, or is no TRAM at all',
  [REFUSAL.unknownCaller]: 'there is no such host or client in this cluster',
  [REFUSAL.wrongProof]: 'it could not prove that it knows the secret',
  [REFUSAL.noSlot]: 'all client slots are taken',
};

const VERSION = 1;
const NONCE_BYTES = 8;
const TIME_BYTES = 4;
const CHALLENGE_BYTES = TIME_BYTES + 8;
const PROOF_BYTES = 16;
const DIGEST_BYTES = 4;
/** version, caller, number, session, digest, nonce */
const HELLO_BYTES = 1 + 1 + 2 + 4 + DIGEST_BYTES + NONCE_BYTES;
const ANSWER_BYTES = HELLO_BYTES + CHALLENGE_BYTES + PROOF_BYTES;
/** base, key, slot, session, proof */
const WELCOME_BYTES = 8 + 8 + 4 + 4 + PROOF_BYTES;
/** Of what a caller says with its proof: here it repeats what nobody but the listener could foresee. */
export const UNFORESEEN_AT = HELLO_BYTES + TIME_BYTES;
/** How old a challenge may be, in seconds, and how many may be answered in that time. */
const CHALLENGE_SECONDS = 10;
const ANSWERED_MAX = 4096;

/** Everything that depends on the secret. */
export class Handshake {
  /** Known to nobody else, and new with every start. */
  private readonly own = randomBytes(32);
  private readonly answered = new Map<string, number>();

  constructor(
    private readonly secret: Uint8Array,
    /** Of the configuration: those who differ in it can't understand each other. */
    private readonly digest: Uint8Array,
    private readonly nowSeconds: () => number = () => Math.floor(Date.now() / 1000),
  ) {}

  newHello(caller: number, number: number, session: number): Hello {
    return { caller, number, session, nonce: new Uint8Array(randomBytes(NONCE_BYTES)) };
  }

  hello({ caller, number, session, nonce }: Hello): Uint8Array {
    const bytes = new Uint8Array(HELLO_BYTES);
    const view = new DataView(bytes.buffer);
    view.setUint8(0, VERSION);
    view.setUint8(1, caller);
    view.setUint16(2, number);
    view.setUint32(4, session);
    bytes.set(this.digest.subarray(0, DIGEST_BYTES), 8);
    bytes.set(nonce, 8 + DIGEST_BYTES);
    return bytes;
  }

  /** To what a listener said when it sent us away. Nothing if it was not a challenge. */
  answer(hello: Hello, refusal: Uint8Array): Uint8Array | undefined {
    if (refusal.length !== 1 + CHALLENGE_BYTES || refusal[0] !== REFUSAL.challenge)
      return undefined;
    const challenge = refusal.subarray(1);
    const said = concat(this.hello(hello), challenge);
    return concat(said, this.proof('dialer', said));
  }

  /** What a caller says: who it is, or why it is sent away. */
  judge(data: Uint8Array): Proven | { readonly refusal: Uint8Array } {
    const hello = parseHello(data);
    if (hello === undefined) return { refusal: Uint8Array.of(REFUSAL.otherCluster) };
    const digest = data.subarray(8, 8 + DIGEST_BYTES);
    if (!equal(digest, this.digest.subarray(0, DIGEST_BYTES))) {
      return { refusal: Uint8Array.of(REFUSAL.otherCluster) };
    }
    if (data.length === HELLO_BYTES) {
      const challenge = this.challenge(data, this.nowSeconds());
      return { refusal: concat(Uint8Array.of(REFUSAL.challenge), challenge) };
    }
    const said = data.subarray(0, HELLO_BYTES + CHALLENGE_BYTES);
    if (!equal(data.subarray(HELLO_BYTES + CHALLENGE_BYTES), this.proof('dialer', said))) {
      return { refusal: Uint8Array.of(REFUSAL.wrongProof) };
    }
    if (!this.isFresh(said)) return { refusal: Uint8Array.of(REFUSAL.wrongProof) };
    return { hello, said: said.slice() };
  }

  /** @param said  as `judge` returned it */
  welcome(said: Uint8Array, { base, keyLow, keyHigh, slot, session }: Welcome): Uint8Array {
    const bytes = new Uint8Array(WELCOME_BYTES - PROOF_BYTES);
    const view = new DataView(bytes.buffer);
    view.setFloat64(0, base);
    view.setUint32(8, keyHigh);
    view.setUint32(12, keyLow);
    view.setUint32(16, slot);
    view.setUint32(20, session);
    return concat(bytes, this.proof('listener', concat(said, bytes)));
  }

  /** @param answer  ours. Nothing if whoever let us in does not know the secret */
  enter(answer: Uint8Array, data: Uint8Array): Welcome | undefined {
    if (data.length !== WELCOME_BYTES) return undefined;
    const said = answer.subarray(0, HELLO_BYTES + CHALLENGE_BYTES);
    const bytes = data.subarray(0, WELCOME_BYTES - PROOF_BYTES);
    const proof = data.subarray(WELCOME_BYTES - PROOF_BYTES);
    if (!equal(proof, this.proof('listener', concat(said, bytes)))) return undefined;
    const view = new DataView(data.buffer, data.byteOffset);
    return {
      base: view.getFloat64(0),
      keyHigh: view.getUint32(8),
      keyLow: view.getUint32(12),
      slot: view.getUint32(16),
      session: view.getUint32(20),
    };
  }

  private proof(who: 'dialer' | 'listener', said: Uint8Array): Uint8Array {
    return createHmac('sha256', this.secret)
      .update(who)
      .update(said)
      .digest()
      .subarray(0, PROOF_BYTES);
  }

  /** The time, and what nobody else could have made of it and the hello. */
  private challenge(data: Uint8Array, seconds: number): Uint8Array {
    const bytes = new Uint8Array(CHALLENGE_BYTES);
    new DataView(bytes.buffer).setUint32(0, seconds);
    const time = bytes.subarray(0, TIME_BYTES);
    const mac = createHmac('sha256', this.own).update(time).update(data).digest();
    bytes.set(mac.subarray(0, CHALLENGE_BYTES - TIME_BYTES), TIME_BYTES);
    return bytes;
  }

  /** Is this a challenge of ours, not too old, and answered for the first time? */
  private isFresh(said: Uint8Array): boolean {
    const hello = said.subarray(0, HELLO_BYTES);
    const challenge = said.subarray(HELLO_BYTES);
    const seconds = new DataView(challenge.buffer, challenge.byteOffset).getUint32(0);
    const now = this.nowSeconds();
    if (Math.abs(now - seconds) > CHALLENGE_SECONDS) return false;
    if (!equal(challenge, this.challenge(hello, seconds))) return false;
    for (const [old, when] of this.answered) {
      if (Math.abs(now - when) <= CHALLENGE_SECONDS) break;
      this.answered.delete(old);
    }
    const name = Buffer.from(said).toString('base64');
    if (this.answered.has(name) || this.answered.size >= ANSWERED_MAX) return false;
    this.answered.set(name, seconds);
    return true;
  }
}

function parseHello(data: Uint8Array): Hello | undefined {
  if (data.length !== HELLO_BYTES && data.length !== ANSWER_BYTES) return undefined;
  const view = new DataView(data.buffer, data.byteOffset);
  if (view.getUint8(0) !== VERSION) return undefined;
  return {
    caller: view.getUint8(1),
    number: view.getUint16(2),
    session: view.getUint32(4),
    nonce: data.slice(8 + DIGEST_BYTES, HELLO_BYTES),
  };
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

function concat(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
