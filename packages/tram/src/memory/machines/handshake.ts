/**
 * Mutual authentication of a dialer and a listener by the cluster's secret. The listener refuses the first call of a
 * dialer, with a challenge. The dialer calls again with a proof that it knows the secret, and only then is accepted. The
 * listener proves the same with its acceptance. Both proofs cover fresh values of both sides, so a recorded proof can't be
 * replayed. Both cover the number of the host that is called, so a dialer that reaches another host than it means is
 * refused. Called by `dialing.ts` (the dialer's side) and `admission.ts` (the listener's).
 *
 *   dialer → listener   hello: who I am, my nonce
 *   listener → dialer   challenge: the time, and a MAC of time and hello under a key that only the listener has
 *   dialer → listener   answer: the hello again, the challenge, proof
 *   listener → dialer   welcome: where the listener's memory can be written and with which key, proof
 *
 * The listener keeps no state between the two calls, so any number of hellos costs it no memory. It keeps the answers
 * that it has accepted until their challenges expire, so that no answer counts twice. Messages have a fixed size, below the
 * least that a provider can carry with a connection (56 bytes).
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { ARENA_VERSION } from '../arena.js';

/** Who dials: a host of replicas, a client without a slot, a client that has one, or an observer that only reads. */
export const CALLER = { host: 1, newClient: 2, client: 3, observer: 4 } as const;

export interface Hello {
  readonly caller: number;
  /** The number of the host, or of a client's slot. */
  readonly number: number;
  /** A client that has a slot: its session. A host: its introduction (`known-hosts.ts`). */
  readonly session: number;
  /** A host: the birth of its memory, and the newest birth of the listener's memory that it has seen (`known-hosts.ts`). */
  readonly birth: number;
  readonly seenBirth: number;
  readonly nonce: Uint8Array;
}

/** A dialer that has proved that it knows the secret. */
export interface Proven {
  readonly hello: Hello;
  /** Its answer without the proof. */
  readonly said: Uint8Array;
}

/** What the listener tells a dialer that it accepts. */
export interface Welcome {
  /** Where and with which key its memory can be written: a `RemoteRegion`. */
  readonly base: number;
  readonly keyLow: number;
  readonly keyHigh: number;
  /** A client: its slot. A host: bits of `HAS_RUN` (`known-hosts.ts`). */
  readonly slot: number;
  /** A client: its session. A host: the introduction of the listener. */
  readonly session: number;
  /** A host: the birth of the listener's memory, and the era in which it has run its replicas (`known-hosts.ts`). */
  readonly birth: number;
  readonly era: number;
}

/** Why a call is refused: the first byte of the refusal. */
export const REFUSAL = {
  challenge: 1,
  /** The dialer has another configuration, or is no TRAM at all. */
  otherCluster: 2,
  unknownCaller: 3,
  wrongProof: 4,
  noSlot: 5,
  /** The host assigns no slots yet: it has not started, or is connected to no majority of the hosts. */
  notReady: 6,
  /** The dialer has an older revision of the configuration than the listener lets in. */
  outdated: 7,
  /** The dialer has the same revision, with other addresses. */
  otherAddresses: 8,
  otherVersion: 9,
  /** The dialer is a host with older memory than the listener has seen of it. */
  olderMemory: 10,
  /** The dialer is a host that has seen newer memory of the listener. */
  newerSeen: 11,
  /** The dialer is a host that has not run yet, and another one in its place is connected and runs. */
  placeTaken: 12,
  /** The dialer is a host that has run its replicas in another era than the listener. */
  otherEra: 13,
} as const;

/** The one with the older era then starts anew by itself (`hosting/machines/machine.ts`). */
const OTHER_ERA = 'it runs in another era: the cluster was recovered without one of the two';

/** For the dialer: why a host has refused us. */
export const REFUSALS: Readonly<Record<number, string>> = {
  [REFUSAL.otherCluster]: 'it has another configuration',
  [REFUSAL.unknownCaller]: 'it does not know us',
  [REFUSAL.wrongProof]: 'it has another secret, or is another host',
  [REFUSAL.noSlot]: 'all its client slots are taken',
  [REFUSAL.otherVersion]: 'it runs TRAM with another memory version',
  [REFUSAL.notReady]: 'it waits for other hosts',
  [REFUSAL.outdated]: 'it uses a later revision of the configuration',
  [REFUSAL.otherAddresses]:
    'it has other addresses of hosts under the same revision of the configuration',
  [REFUSAL.olderMemory]: 'it has seen newer memory of this host',
  [REFUSAL.newerSeen]: 'its memory is older than what this host has seen of it',
  [REFUSAL.placeTaken]: 'another process runs as this host, and is connected to it',
  [REFUSAL.otherEra]: OTHER_ERA,
};

/** For the listener: why we have refused a caller. */
export const REFUSED: Readonly<Record<number, string>> = {
  [REFUSAL.otherCluster]: 'it has another configuration, or is no TRAM at all',
  [REFUSAL.unknownCaller]: 'there is no such host or client in this cluster',
  [REFUSAL.wrongProof]: 'it could not prove that it knows the secret, or means another host',
  [REFUSAL.noSlot]: 'all client slots are taken',
  [REFUSAL.otherVersion]: 'it runs TRAM with another memory version',
  [REFUSAL.outdated]: 'it has an outdated revision of the configuration',
  [REFUSAL.otherAddresses]:
    'it has other addresses of hosts under the same revision of the configuration',
  [REFUSAL.olderMemory]: 'its memory is older than what this host has seen of it',
  [REFUSAL.newerSeen]: 'it has seen newer memory of this host',
  [REFUSAL.placeTaken]: 'it has not run yet, and the host in its place is connected and runs',
  [REFUSAL.otherEra]: OTHER_ERA,
};

const NONCE_BYTES = 8;
const TIME_BYTES = 4;
const CHALLENGE_BYTES = TIME_BYTES + 8;
const PROOF_BYTES = 16;
const DIGEST_BYTES = 4;
/** Version, caller, number, session, both births, digest, nonce. */
const HELLO_BYTES = 1 + 1 + 2 + 4 + 4 + 4 + DIGEST_BYTES + NONCE_BYTES;
const DIGEST_AT = HELLO_BYTES - NONCE_BYTES - DIGEST_BYTES;
const ANSWER_BYTES = HELLO_BYTES + CHALLENGE_BYTES + PROOF_BYTES;
/** Base, key, slot, session, birth, era, proof. */
const WELCOME_BYTES = 8 + 8 + 4 + 4 + 4 + 4 + PROOF_BYTES;
/** Where in an answer the MAC of the challenge is: only the listener could predict it. */
export const CHALLENGE_MAC_AT = HELLO_BYTES + TIME_BYTES;
/** How old a challenge may be. */
const CHALLENGE_SECONDS = 10;
/** How many answers are accepted in that time. */
const ACCEPTED_MAX = 4096;

/** Both sides of the handshake. */
export class Handshake {
  /** The key of our challenges: never sent, and new with every start. */
  private readonly challengeKey = randomBytes(32);
  /** Answers that were accepted, with the time of their challenge, oldest first. */
  private readonly accepted = new Map<string, number>();

  constructor(
    private readonly secret: Uint8Array,
    /** Digest of the configuration: hosts and clients with another one are refused. */
    private readonly digest: Uint8Array,
    /** The number of the host that listens. */
    private readonly self: number,
    private readonly nowSeconds: () => number = () => Math.floor(Date.now() / 1000),
  ) {}

  newHello(hello: Omit<Hello, 'nonce'>): Hello {
    return { ...hello, nonce: new Uint8Array(randomBytes(NONCE_BYTES)) };
  }

  hello({ caller, number, session, birth, seenBirth, nonce }: Hello): Uint8Array {
    const bytes = new Uint8Array(HELLO_BYTES);
    const view = new DataView(bytes.buffer);
    view.setUint8(0, ARENA_VERSION);
    view.setUint8(1, caller);
    view.setUint16(2, number);
    view.setUint32(4, session);
    view.setUint32(8, birth);
    view.setUint32(12, seenBirth);
    bytes.set(this.digest.subarray(0, DIGEST_BYTES), DIGEST_AT);
    bytes.set(nonce, DIGEST_AT + DIGEST_BYTES);
    return bytes;
  }

  /** Dialer: our answer to a refusal, undefined if that is no challenge. @param callee  the number of the host that we call */
  answer(hello: Hello, refusal: Uint8Array, callee: number): Uint8Array | undefined {
    const isChallenge = refusal[0] === REFUSAL.challenge;
    if (!isChallenge || refusal.length !== 1 + CHALLENGE_BYTES) return undefined;
    const challenge = refusal.subarray(1);
    const said = concat(this.hello(hello), challenge);
    return concat(said, this.proof('dialer', callee, said));
  }

  /** Listener: who calls, if it has proved that it knows the secret, or else how to refuse it. */
  judge(data: Uint8Array): Proven | { readonly refusal: Uint8Array } {
    const hello = parseHello(data);
    if (hello === undefined) return { refusal: Uint8Array.of(REFUSAL.otherCluster) };
    // The digest would differ, too, but would not tell why.
    if (data[0] !== ARENA_VERSION) return { refusal: Uint8Array.of(REFUSAL.otherVersion) };
    const digest = data.subarray(DIGEST_AT, DIGEST_AT + DIGEST_BYTES);
    if (!equal(digest, this.digest.subarray(0, DIGEST_BYTES))) {
      return { refusal: Uint8Array.of(REFUSAL.otherCluster) };
    }
    if (data.length === HELLO_BYTES) {
      const challenge = this.challenge(data, this.nowSeconds());
      return { refusal: concat(Uint8Array.of(REFUSAL.challenge), challenge) };
    }
    const said = data.subarray(0, HELLO_BYTES + CHALLENGE_BYTES);
    const proof = data.subarray(HELLO_BYTES + CHALLENGE_BYTES);
    if (!equal(proof, this.proof('dialer', this.self, said))) {
      return { refusal: Uint8Array.of(REFUSAL.wrongProof) };
    }
    this.forgetExpired();
    if (!this.isFresh(said)) return { refusal: Uint8Array.of(REFUSAL.wrongProof) };
    this.accepted.set(nameOf(said), challengeSeconds(said));
    return { hello, said: said.slice() };
  }

  /** Listener: how to accept a dialer. @param said  as `judge` returned it */
  welcome(said: Uint8Array, welcome: Welcome): Uint8Array {
    const { base, keyLow, keyHigh, slot, session, birth, era } = welcome;
    const bytes = new Uint8Array(WELCOME_BYTES - PROOF_BYTES);
    const view = new DataView(bytes.buffer);
    view.setFloat64(0, base);
    view.setUint32(8, keyHigh);
    view.setUint32(12, keyLow);
    view.setUint32(16, slot);
    view.setUint32(20, session);
    view.setUint32(24, birth);
    view.setUint32(28, era);
    return concat(bytes, this.proof('listener', this.self, concat(said, bytes)));
  }

  /**
   * Dialer: what the listener tells us, undefined if it has not proved that it knows the secret and is the host that we
   * call.
   * @param answer  ours
   */
  enter(answer: Uint8Array, data: Uint8Array, callee: number): Welcome | undefined {
    if (data.length !== WELCOME_BYTES) return undefined;
    const said = answer.subarray(0, HELLO_BYTES + CHALLENGE_BYTES);
    const bytes = data.subarray(0, WELCOME_BYTES - PROOF_BYTES);
    const proof = data.subarray(WELCOME_BYTES - PROOF_BYTES);
    if (!equal(proof, this.proof('listener', callee, concat(said, bytes)))) return undefined;
    const view = new DataView(data.buffer, data.byteOffset);
    return {
      base: view.getFloat64(0),
      keyHigh: view.getUint32(8),
      keyLow: view.getUint32(12),
      slot: view.getUint32(16),
      session: view.getUint32(20),
      birth: view.getUint32(24),
      era: view.getUint32(28),
    };
  }

  private proof(who: 'dialer' | 'listener', callee: number, said: Uint8Array): Uint8Array {
    return createHmac('sha256', this.secret)
      .update(`${who} ${callee} `)
      .update(said)
      .digest()
      .subarray(0, PROOF_BYTES);
  }

  /** The time, and a MAC of time and hello under our own key. */
  private challenge(hello: Uint8Array, seconds: number): Uint8Array {
    const bytes = new Uint8Array(CHALLENGE_BYTES);
    new DataView(bytes.buffer).setUint32(0, seconds);
    const time = bytes.subarray(0, TIME_BYTES);
    const mac = createHmac('sha256', this.challengeKey).update(time).update(hello).digest();
    bytes.set(mac.subarray(0, CHALLENGE_BYTES - TIME_BYTES), TIME_BYTES);
    return bytes;
  }

  /** Is this the first answer to a challenge of ours that has not expired? */
  private isFresh(said: Uint8Array): boolean {
    const hello = said.subarray(0, HELLO_BYTES);
    const seconds = challengeSeconds(said);
    if (this.hasExpired(seconds)) return false;
    if (!equal(said.subarray(HELLO_BYTES), this.challenge(hello, seconds))) return false;
    return !this.accepted.has(nameOf(said)) && this.accepted.size < ACCEPTED_MAX;
  }

  private hasExpired(seconds: number): boolean {
    return Math.abs(this.nowSeconds() - seconds) > CHALLENGE_SECONDS;
  }

  private forgetExpired(): void {
    for (const [name, seconds] of this.accepted) {
      if (!this.hasExpired(seconds)) return;
      this.accepted.delete(name);
    }
  }
}

/** When the challenge in an answer was made. */
function challengeSeconds(said: Uint8Array): number {
  return new DataView(said.buffer, said.byteOffset).getUint32(HELLO_BYTES);
}

function nameOf(said: Uint8Array): string {
  return Buffer.from(said).toString('base64');
}

function parseHello(data: Uint8Array): Hello | undefined {
  if (data.length !== HELLO_BYTES && data.length !== ANSWER_BYTES) return undefined;
  const view = new DataView(data.buffer, data.byteOffset);
  return {
    caller: view.getUint8(1),
    number: view.getUint16(2),
    session: view.getUint32(4),
    birth: view.getUint32(8),
    seenBirth: view.getUint32(12),
    nonce: data.slice(DIGEST_AT + DIGEST_BYTES, HELLO_BYTES),
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
