/**
 * Clients of a cluster on several machines take their slots from one of the hosts, their home: each host has a share
 * of them. A client that loses its home keeps its slot and comes back with it. So a slot is free at once when its client
 * has taken leave, and otherwise only after the client could have come back.
 */
import { type ArenaMap, OWNER, PROCESS } from '../../memory/arena.js';
import type { SlotKeeper } from '../../memory/machines/network.js';
import type { Identity } from '../../protocol/member.js';

const RETURN_MS = 10_000;
/** Sessions are times, in quarters of a second, so that they grow even if a host forgets which it gave. */
const SESSION_MS = 250;
const SESSIONS_SINCE_MS = Date.UTC(2026, 0);

/** The host that gives this slot to clients, and knows what is to be known of them. */
export function homeOf(slot: number, hosts: number): number {
  return slot % hosts;
}

export class HomeSlots implements SlotKeeper {
  /** Our share of the slots, once there are some to take: before that time, each waits for its client. */
  private readonly freeAtMs = new Map<number, number>();
  /** By slot, of those clients that we have seen. */
  private readonly sessions = new Map<number, number>();
  private readonly connected = new Set<number>();
  private lastSession = 0;

  constructor(
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
    private readonly host: number,
    private readonly nowMs: () => number = Date.now,
  ) {}

  /** From now on there are slots to take. @param past  what the host had before: without memory, all may be taken */
  open(past: Identity['past']): void {
    const { clients } = this.map.layout.sizes;
    for (let slot = 0; slot < clients; slot++) {
      if (homeOf(slot, this.map.hosts) !== this.host) continue;
      this.freeAtMs.set(slot, 0);
      if (this.connected.has(slot)) continue;
      if (past === 'lost') this.words[this.owner(slot)] = OWNER.away;
      this.awaitReturn(slot);
    }
  }

  take(): { readonly slot: number; readonly session: number } | undefined {
    const nowMs = this.nowMs();
    for (const [slot, freeAtMs] of this.freeAtMs) {
      if (this.connected.has(slot)) continue;
      if (freeAtMs > nowMs && this.words[this.owner(slot)] !== OWNER.nobody) continue;
      const session = this.nextSession(nowMs);
      this.occupy(slot, session);
      return { slot, session };
    }
    return undefined;
  }

  isStillOf(slot: number, session: number): boolean {
    return slot < this.map.layout.sizes.clients && session >= (this.sessions.get(slot) ?? 1);
  }

  returns(slot: number, session: number): void {
    this.occupy(slot, session);
    this.lastSession = Math.max(this.lastSession, session);
  }

  leaves(slot: number): void {
    this.connected.delete(slot);
    this.awaitReturn(slot);
  }

  private occupy(slot: number, session: number): void {
    this.connected.add(slot);
    this.sessions.set(slot, session);
    this.words[this.owner(slot)] = OWNER.present;
  }

  /** Unless it has taken leave, or there was nobody. */
  private awaitReturn(slot: number): void {
    if (this.words[this.owner(slot)] === OWNER.nobody) return;
    this.words[this.owner(slot)] = OWNER.away;
    if (this.freeAtMs.has(slot)) this.freeAtMs.set(slot, this.nowMs() + RETURN_MS);
  }

  /** Whoever takes leave writes `OWNER.nobody` there. */
  private owner(slot: number): number {
    return this.map.process(this.map.replicas + slot) + PROCESS.owner;
  }

  /** No two hosts give the same. */
  private nextSession(nowMs: number): number {
    const { hosts } = this.map;
    const least = Math.max(
      this.lastSession + 1,
      Math.floor((nowMs - SESSIONS_SINCE_MS) / SESSION_MS),
    );
    this.lastSession = least + ((this.host - (least % hosts) + hosts) % hosts);
    return this.lastSession;
  }
}
