/**
 * Client slots on machines. Each host hands out a share of the slots, and a client's *home* is the host that gave it
 * its slot. A client that loses the connection to its home keeps the slot and reconnects with it. So a slot is free at
 * once when its client has closed, and otherwise only after the time in which the client may reconnect.
 *
 * With a journal, all sessions end when a new era begins. Those of the new era start with its first session.
 */
import { type ArenaMap, OWNER, PARTICIPANT } from '../../memory/arena.js';
import type { SlotKeeper } from '../../memory/machines/network-options.js';
import type { Identity } from '../../protocol/member.js';

const RETURN_MS = 10_000;
/** Sessions are times in quarters of a second, so they grow even if a host has lost its memory. */
const SESSION_MS = 250;
const SESSIONS_SINCE_MS = Date.UTC(2026, 0);

/** The session of a client that connects now. */
export function sessionAt(ms: number): number {
  return Math.floor((ms - SESSIONS_SINCE_MS) / SESSION_MS);
}

/** The home of a slot: the host that hands it out and knows its state. */
export function homeOf(slot: number, hosts: number): number {
  return slot % hosts;
}

export class HomeSlots implements SlotKeeper {
  /** Our share of the slots, and from when on each may be taken: until then it waits for its client. */
  private readonly freeAtMs = new Map<number, number>();
  /** The sessions of connected clients, by slot. */
  private readonly sessions = new Map<number, number>();
  private readonly connected = new Set<number>();
  private lastSession = 0;
  private hasOpened = false;
  private firstSession = 1;

  constructor(
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
    private readonly host: number,
    private readonly hasEras = false,
    private readonly nowMs: () => number = Date.now,
  ) {}

  get isOpen(): boolean {
    return this.hasOpened;
  }

  get awaitsEra(): boolean {
    return this.hasEras && !this.hasOpened;
  }

  /**
   * Starts handing out slots.
   * @param past  the host's past: if its memory is lost, any slot may be in use
   * @param firstSession  of the era: earlier ones have ended
   */
  open(past: Identity['past'], firstSession = 1): void {
    this.firstSession = firstSession;
    this.lastSession = Math.max(this.lastSession, firstSession - 1);
    const { clients } = this.map.layout.sizes;
    for (let slot = 0; slot < clients; slot++) {
      const isOurs = homeOf(slot, this.map.hosts) === this.host;
      if (isOurs) this.freeAtMs.set(slot, 0);
      if (this.connected.has(slot)) continue;
      if (isOurs && past === 'lost') this.words[this.owner(slot)] = OWNER.away;
      // Also for slots of other homes: our memory may name clients that were connected before we ended.
      this.awaitReturn(slot);
    }
    this.hasOpened = true;
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
    const least = Math.max(this.sessions.get(slot) ?? 1, this.firstSession);
    return slot < this.map.layout.sizes.clients && session >= least;
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
    const ended = this.line(slot) + PARTICIPANT.endedSession;
    this.words[ended] = Math.max(this.words[ended], session - 1);
  }

  /** Keeps the slot, unless its client has closed or it had none. */
  private awaitReturn(slot: number): void {
    if (this.words[this.owner(slot)] === OWNER.nobody) return;
    this.words[this.owner(slot)] = OWNER.away;
    if (this.freeAtMs.has(slot)) this.freeAtMs.set(slot, this.nowMs() + RETURN_MS);
  }

  /** A client that closes writes `OWNER.nobody` there. */
  private owner(slot: number): number {
    return this.line(slot) + PARTICIPANT.owner;
  }

  private line(slot: number): number {
    return this.map.participant(this.map.replicas + slot);
  }

  /** Different hosts never hand out the same session. */
  private nextSession(nowMs: number): number {
    const { hosts } = this.map;
    const least = Math.max(this.lastSession + 1, sessionAt(nowMs));
    this.lastSession = least + ((this.host - (least % hosts) + hosts) % hosts);
    return this.lastSession;
  }
}
