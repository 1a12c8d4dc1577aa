/**
 * What hosts remember of each other: which of them have ever run their replicas, and with which revision of the
 * configuration. They exchange it when they connect. Called by `dialer.ts`, `admission.ts` and `network.ts`.
 *
 * - A host that has lost its memory learns that it had one (`hosting/machines/machine.ts`).
 * - A host that was *replaced*, by one with another address, is refused from then on: it has an older revision.
 *
 * The revisions of two hosts may differ while a change of addresses is rolled out. The *least revision* ends that: hosts
 * refuse all hosts below it. It only grows. Each host publishes its own in its line of all arenas, adopts the highest
 * that it finds there, closes the connections of hosts that are below it, and only then publishes it. So once all hosts
 * publish a revision, none of them uses the memory of a host with an older one, and none ever will.
 */
import { ARENA, ARENA_STATE, type ArenaMap, HOST } from '../arena.js';
import { REFUSAL } from './handshake.js';

/** On which addresses of the hosts two hosts agree. */
export interface AddressBook {
  /** Grows whenever an address changes. */
  readonly revision: number;
  /** Of all addresses, 16 bits: finds out that somebody has changed them without raising the revision. */
  readonly digest: number;
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

export class KnownHosts {
  /** By host, undefined until it has connected: what it remembers of us. */
  private readonly remembersUs: (number | undefined)[] = [];
  /** By host: the revision that it had when it connected. */
  private readonly revisions: number[] = [];
  /** By host: the least revision that we have published there since it has connected. */
  private readonly told: number[] = [];
  private readonly hosts: readonly number[];

  constructor(
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
    private readonly self: number,
    private readonly own: AddressBook,
  ) {
    this.hosts = Array.from({ length: map.hosts }, (_, host) => host);
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
    return this.remembersUs.some((bits) => bits !== undefined && (bits & bit) !== 0);
  }

  /** What a host tells of itself before it is accepted, or with the acceptance: in `Hello.session`, `Welcome.session`. */
  get introduction(): number {
    const { revision, digest } = this.own;
    return ((digest << 16) | (revision << 1) | (this.haveRun ? 1 : 0)) >>> 0;
  }

  /** One of `REFUSAL` if a host that introduces itself like this can't be let in, else 0. */
  refusalOf(introduction: number): number {
    const { revision, digest } = this.own;
    const theirs = revisionOf(introduction);
    // As long as we have no memory we do not know the least revision.
    const least = this.haveRun ? this.leastRevision : Math.max(revision, this.leastRevision);
    if (theirs < least) return REFUSAL.outdated;
    if (theirs === revision && introduction >>> 16 !== digest) return REFUSAL.otherAddresses;
    return 0;
  }

  /** What to tell another host: bits of `HAS_RUN`, and our least revision. @param introduction  its own */
  bitsFor(host: number, introduction: number): number {
    const begun = this.words[this.map.host(host) + HOST.begun];
    return (
      (begun > 0 ? HAS_RUN.receiver : 0) |
      (begun === revisionOf(introduction) ? HAS_RUN.receiverLately : 0) |
      (this.haveRun ? HAS_RUN.sender : 0) |
      (this.leastRevision << LEAST_SHIFT)
    );
  }

  /** Another host has connected. @param bits  what it remembers  @param introduction  what it tells of itself */
  learn(host: number, bits: number, introduction: number): void {
    const { words } = this;
    const line = this.map.host(host);
    this.remembersUs[host] = bits;
    this.revisions[host] = revisionOf(introduction);
    this.told[host] = 0;
    // It may have published a higher one already.
    words[line + HOST.leastRevision] = Math.max(this.publishedBy(host), bits >>> LEAST_SHIFT);
    const hasRun = (bits & HAS_RUN.sender) !== 0;
    if (hasRun) words[line + HOST.begun] = revisionOf(introduction);
  }

  // --- revisions -------------------------------------------------------------------------------

  /** The hosts that have connected with another revision than ours. */
  get differentHosts(): number[] {
    const { revisions, own } = this;
    return this.hosts.filter((host) => (revisions[host] ?? own.revision) !== own.revision);
  }

  /** Our own. It is in our memory, so it outlives a restart. */
  get leastRevision(): number {
    return this.publishedBy(this.self);
  }

  /** From now on, all hosts are to refuse hosts whose revision is older than ours. */
  demandOurs(): void {
    this.words[this.map.host(this.self) + HOST.leastRevision] = this.own.revision;
  }

  /** Do all hosts refuse hosts whose revision is older than ours? */
  get isOursDemanded(): boolean {
    return this.hosts.every((host) => this.publishedBy(host) >= this.own.revision);
  }

  /** Adopt the highest least revision that a host has published. @returns the hosts that are now below it */
  adoptLeast(): number[] {
    const highest = Math.max(...this.hosts.map((host) => this.publishedBy(host)));
    if (highest <= this.leastRevision) return [];
    this.words[this.map.host(this.self) + HOST.leastRevision] = highest;
    return this.hosts.filter((host) => (this.revisions[host] ?? highest) < highest);
  }

  /** Must our least revision be published at this host? It then counts as published. */
  takePublication(host: number): boolean {
    const isNew = this.leastRevision > (this.told[host] ?? 0);
    if (isNew) this.told[host] = this.leastRevision;
    return isNew;
  }

  private publishedBy(host: number): number {
    return this.words[this.map.host(host) + HOST.leastRevision];
  }
}

function revisionOf(introduction: number): number {
  return (introduction >>> 1) & REVISION_BITS;
}
