/**
 * What hosts remember of each other: with which memory they have run their replicas, and with which revision of the
 * configuration. They exchange it when they connect. Called by `dialer.ts`, `admission.ts` and `network.ts`.
 *
 * - A host that has lost its memory learns that it had one (`hosting/machines/machine.ts`).
 * - Memory that a host has run with once, and not most recently, is refused: it lacks the promises made since. Each memory
 *   has a *birth*, the time of its creation. Each host records the newest birth of every other host's memory, from the time
 *   that its replicas run, and refuses older ones. When two hosts connect they also read each other's records.
 * - A host that was *replaced*, by one with another address, is refused from then on: it has an older revision.
 * - Hosts that have run their replicas in different eras do not connect: logs of one era mean nothing in another. A host that
 *   has not run yet has no era. It connects to all, and tells its era when its replicas start.
 *
 * The revisions of two hosts may differ while a change of addresses is rolled out. The *least revision* ends that: hosts
 * refuse all hosts below it. It only grows. Each host publishes its own in its line of all arenas, adopts the highest
 * that it finds there, closes the connections of hosts that are below it, and only then publishes it. So once all hosts
 * publish a revision, none of them uses the memory of a host with an older one, and none ever will.
 */
import { ARENA, ARENA_STATE, type ArenaMap, HOST } from '../arena.js';
import { REFUSAL } from './handshake.js';
import type { Link } from './link.js';

/** On which addresses of the hosts two hosts agree. */
export interface AddressBook {
  /** Grows whenever an address changes. */
  readonly revision: number;
  /** Of all addresses, 16 bits: finds out that somebody has changed them without raising the revision. */
  readonly digest: number;
}

/** What a host tells of itself when it calls or accepts a call. */
export interface Introduction {
  /** `KnownHosts.introduction` */
  readonly session: number;
  /** Of its memory. */
  readonly birth: number;
  /** The era in which it has run its replicas; 0 if it has not. Undefined: it has not told yet. */
  readonly era?: number;
}

/** Bits of what one host tells another when they connect. */
export const HAS_RUN = {
  /** The sender remembers that the receiver has run its replicas. */
  receiver: 1,
  /** The sender has run its replicas. */
  sender: 2,
  /** The sender remembers that the receiver has run its replicas with the revision that the receiver has now. */
  receiverLately: 4,
} as const;

/** Above the bits of `HAS_RUN`: the sender's least revision. */
const LEAST_SHIFT = 8;
const REVISION_BITS = 0x7fff;

/** Of clients, which no host refuses for their addresses. */
export const NO_ADDRESSES: AddressBook = { revision: 1, digest: 0 };

/** What is known of a host that has connected. */
interface Known {
  /** Bits of `HAS_RUN`: what it remembers of us. */
  readonly bits: number;
  readonly revision: number;
  readonly birth: number;
}

export class KnownHosts {
  /** By host, undefined until it has connected. */
  private readonly known: (Known | undefined)[] = [];
  /** By host: the least revision that we have published there since it has connected. */
  private readonly told: number[] = [];
  /** By host, as read from its arena: the newest births that it knows, and at its own place the birth of its memory. */
  private readonly records: readonly Int32Array[];
  /** The hosts whose records are on their way. */
  private readonly awaited = new Set<number>();
  private readonly hosts: readonly number[];
  /** The highest era that another host has run its replicas in, as far as we know. */
  newestEra = 0;

  constructor(
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
    private readonly self: number,
    private readonly own: AddressBook,
  ) {
    this.hosts = Array.from({ length: map.hosts }, (_, host) => host);
    this.records = this.hosts.map(() => new Int32Array(map.hosts));
  }

  /** Have we run our replicas, as far as our own memory tells? */
  get haveRun(): boolean {
    return this.words[ARENA.state] === ARENA_STATE.running;
  }

  /** Does a host that has connected remember that we have run our replicas? */
  get areRemembered(): boolean {
    return this.isToldByAny(HAS_RUN.receiver);
  }

  /** And with the revision that we have now? */
  get areRememberedLately(): boolean {
    return this.isToldByAny(HAS_RUN.receiverLately);
  }

  private isToldByAny(bit: number): boolean {
    return this.known.some((known) => known !== undefined && (known.bits & bit) !== 0);
  }

  // --- connecting ------------------------------------------------------------------------------

  /** What a host tells of itself before it is accepted, or with the acceptance: in `Hello.session`, `Welcome.session`. */
  get introduction(): number {
    const { revision, digest } = this.own;
    return ((digest << 16) | (revision << 1) | (this.haveRun ? 1 : 0)) >>> 0;
  }

  /** Of our own memory. */
  get birth(): number {
    return this.wordOf(this.self, HOST.birth);
  }

  /** In which we have run our replicas; 0 if we have not, or have no journal. */
  get era(): number {
    // A host that takes part in a recovery has begun an era that is not open yet.
    return this.haveRun ? this.wordOf(this.self, HOST.era) : 0;
  }

  /** Of the memory that a host has run with. 0: it never has, as far as we know. */
  newestBirth(host: number): number {
    return this.wordOf(host, HOST.newestBirth);
  }

  /** One of `REFUSAL` if a host that introduces itself like this can't be let in, else 0. */
  refusalOf(host: number, { session, birth, era = 0 }: Introduction): number {
    const { revision, digest } = this.own;
    const theirs = revisionOf(session);
    // As long as we have no memory we do not know the least revision.
    const least = this.haveRun ? this.leastRevision : Math.max(revision, this.leastRevision);
    if (theirs < least) return REFUSAL.outdated;
    if (theirs === revision && session >>> 16 !== digest) return REFUSAL.otherAddresses;
    if (birth < this.newestBirth(host)) return REFUSAL.olderMemory;
    return this.isOtherEra(era) ? REFUSAL.otherEra : 0;
  }

  private isOtherEra(era: number): boolean {
    this.newestEra = Math.max(this.newestEra, era);
    return era > 0 && this.era > 0 && era !== this.era;
  }

  /** Has the host run its replicas, with the memory that it had when it connected? */
  runs(host: number): boolean {
    const known = this.known[host];
    return known !== undefined && known.birth > 0 && known.birth === this.wordOf(host, HOST.birth);
  }

  /** What to tell another host: bits of `HAS_RUN`, and our least revision. @param introduction  its own */
  bitsFor(host: number, introduction: number): number {
    const begun = this.wordOf(host, HOST.begun);
    return (
      (begun > 0 ? HAS_RUN.receiver : 0) |
      (begun === revisionOf(introduction) ? HAS_RUN.receiverLately : 0) |
      (this.haveRun ? HAS_RUN.sender : 0) |
      (this.leastRevision << LEAST_SHIFT)
    );
  }

  /** A host is about to connect. What it published over an earlier connection says nothing of what it does now. */
  expect(host: number): void {
    this.words[this.map.host(host) + HOST.leastRevision] = 0;
    this.words[this.map.host(host) + HOST.era] = 0;
  }

  /** Another host has connected. @param bits  what it remembers */
  learn(host: number, bits: number, { session, birth, era = 0 }: Introduction): void {
    const { words } = this;
    const line = this.map.host(host);
    const revision = revisionOf(session);
    this.known[host] = { bits, revision, birth };
    this.told[host] = 0;
    // It may have published higher ones already.
    words[line + HOST.leastRevision] = Math.max(this.publishedBy(host), bits >>> LEAST_SHIFT);
    this.noteEra(host, era);
    if ((bits & HAS_RUN.sender) === 0) return;
    words[line + HOST.begun] = revision;
    words[line + HOST.birth] = birth;
  }

  /** The host runs its replicas in this era. */
  noteEra(host: number, era: number): void {
    const at = this.map.host(host) + HOST.era;
    this.words[at] = Math.max(this.words[at], era);
  }

  /** The link to a host has opened. Posted before anything else: who helps our replicas knows our memory. */
  exchange(link: Link): void {
    this.publish(link);
    const { host } = link;
    const record = this.records[host].fill(0);
    this.awaited.add(host);
    for (const other of this.hosts) {
      if (other === host || other === this.self) continue;
      link.readWords(this.map.host(other) + HOST.newestBirth, record, other, 1);
    }
    // Last: once it is there, so are the others.
    link.readWords(this.map.host(host) + HOST.birth, record, host, 1);
  }

  /** Are records of other hosts on their way? */
  get awaitsRecords(): boolean {
    return this.awaited.size > 0;
  }

  // --- what we publish and adopt ---------------------------------------------------------------

  /** Our replicas run, with this memory and this revision. */
  begin(): void {
    this.words[this.map.host(this.self) + HOST.begun] = this.own.revision;
  }

  /** From now on, all hosts are to refuse hosts whose revision is older than ours. */
  demandOurs(): void {
    this.words[this.map.host(this.self) + HOST.leastRevision] = this.own.revision;
  }

  /** Write what the other host must know of us. It has arrived once the link is settled. */
  publish(link: Link): void {
    const line = this.map.host(this.self);
    // A host that has not run must not replace what others know of its earlier memory.
    const from = line + (this.haveRun ? HOST.era : HOST.leastRevision);
    link.writeWords(from, this.words.slice(from, line + HOST.leastRevision + 1));
    this.told[link.host] = this.leastRevision;
  }

  /** Has our least revision risen since it was published at this host? */
  mustPublish(host: number): boolean {
    return this.leastRevision > (this.told[host] ?? 0);
  }

  /** Adopt the highest least revision and the newest births that other hosts have published or recorded. */
  adopt(): void {
    const { words, map } = this;
    const highest = Math.max(...this.hosts.map((host) => this.publishedBy(host)));
    words[map.host(this.self) + HOST.leastRevision] = highest;
    for (const host of this.hosts) {
      if (host === this.self) continue;
      const births = [this.newestBirth(host)];
      if (this.wordOf(host, HOST.begun) > 0) births.push(this.wordOf(host, HOST.birth));
      for (const from of this.awaited)
        if (from !== host) births.push(this.records[from][host] >>> 0);
      words[map.host(host) + HOST.newestBirth] = Math.max(...births);
    }
    for (const from of this.awaited) if (this.records[from][from] !== 0) this.awaited.delete(from);
  }

  /** Is a host that was let in one that we would refuse now? */
  isOutdated(host: number): boolean {
    const known = this.known[host];
    if (known === undefined) return false;
    if (this.isOtherEra(this.wordOf(host, HOST.era))) return true;
    return known.revision < this.leastRevision || known.birth < this.newestBirth(host);
  }

  // --- revisions -------------------------------------------------------------------------------

  /** The hosts that have connected with another revision than ours. */
  get differentHosts(): number[] {
    const { known, own } = this;
    return this.hosts.filter((host) => (known[host]?.revision ?? own.revision) !== own.revision);
  }

  /** Our own. It is in our memory, so it outlives a restart. */
  get leastRevision(): number {
    return this.publishedBy(this.self);
  }

  /** Do all hosts refuse hosts whose revision is older than ours? Certain only while all of them are connected. */
  get isOursDemanded(): boolean {
    return this.hosts.every((host) => this.publishedBy(host) >= this.own.revision);
  }

  private publishedBy(host: number): number {
    return this.wordOf(host, HOST.leastRevision);
  }

  private wordOf(host: number, word: number): number {
    return this.words[this.map.host(host) + word] >>> 0;
  }
}

/** Has the host that introduces itself run its replicas? */
export function hasRun(session: number): boolean {
  return (session & 1) !== 0;
}

function revisionOf(session: number): number {
  return (session >>> 1) & REVISION_BITS;
}
