/**
 * Records, for a simulated run, which calls wait for deferred replies at which group, and how they end. Services and
 * clients report here, and every report is checked at once. Called by `service.ts`, `workload.ts` and `world.ts`.
 *
 * Each group ends a call that waits exactly once: it answers the call or abandons it, at the same place in its order at
 * every replica. It abandons a call only if its client has given it up or has ended.
 */
import { SimulationFailure, sameBytes } from './ledger.js';

interface End {
  readonly what: 'answered' | 'abandoned';
  /** How many messages the group had delivered by then. */
  readonly count: number;
  readonly reply: Uint8Array;
}

interface Deferral {
  /** The number of the delivery that has deferred the reply. */
  readonly count: number;
  end: End | undefined;
}

const NO_REPLY = new Uint8Array(0);

export class Deferrals {
  /** By group and id. */
  private readonly byGroup: Map<string, Deferral>[];
  private readonly givenUp = new Set<string>();
  private readonly endedSessions = new Set<number>();

  constructor(groups: number) {
    this.byGroup = Array.from({ length: groups }, () => new Map());
  }

  /** The client of this message no longer waits for its replies. */
  giveUp(id: string): void {
    this.givenUp.add(id);
  }

  sessionEnded(session: number): void {
    this.endedSessions.add(session);
  }

  /** A replica has deferred its reply. */
  deferred(group: number, id: string, count: number): void {
    const known = this.byGroup[group].get(id);
    if (known === undefined) this.byGroup[group].set(id, { count, end: undefined });
    else if (known.count !== count) fail(group, id, 'was deferred at two places');
  }

  /** A replica has replied to a call that waits. */
  answered(group: number, id: string, count: number, reply: Uint8Array): void {
    this.end(group, id, { what: 'answered', count, reply: reply.slice() });
  }

  /** A replica was told that a call waits no longer. */
  abandoned(group: number, id: string, count: number): void {
    const session = Number(id.slice(1, id.indexOf(':')));
    if (!this.givenUp.has(id) && !this.endedSessions.has(session)) {
      fail(group, id, 'was abandoned, although its client waits for it');
    }
    this.end(group, id, { what: 'abandoned', count, reply: NO_REPLY });
  }

  private end(group: number, id: string, end: End): void {
    const deferral = this.byGroup[group].get(id);
    if (deferral === undefined) {
      fail(group, id, `was ${end.what}, and was not deferred`);
      return;
    }
    const known = deferral.end;
    deferral.end = end;
    if (known === undefined) return;
    const isSame =
      known.what === end.what && known.count === end.count && sameBytes(known.reply, end.reply);
    if (!isSame) fail(group, id, `was ${known.what} and ${end.what}, or twice`);
  }

  /** Does the message wait at any group? */
  isWaiting(id: string): boolean {
    return this.byGroup.some((deferrals) => {
      const deferral = deferrals.get(id);
      return deferral !== undefined && deferral.end === undefined;
    });
  }

  /** A client has received this reply of a group that defers. */
  requireAnswer(group: number, id: string, reply: Uint8Array): void {
    const end = this.byGroup[group].get(id)?.end;
    if (end?.what !== 'answered') fail(group, id, 'has a reply that the group did not give');
    else if (!sameBytes(end.reply, reply)) fail(group, id, 'has another reply than the group gave');
  }

  /** The group has confirmed that it has given up the call. */
  requireEnd(group: number, id: string): void {
    const deferral = this.byGroup[group].get(id);
    if (deferral !== undefined && deferral.end === undefined) {
      fail(group, id, 'still waits after it was cancelled');
    }
  }
}

function fail(group: number, id: string, what: string): void {
  throw new SimulationFailure('reply', `${id} ${what}, at group ${group}`);
}
