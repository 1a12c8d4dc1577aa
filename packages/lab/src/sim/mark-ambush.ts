/**
 * Cuts the power where a recovery needs snapshots at marks that do not count yet, which hardly ever happens by chance. It takes
 * three kinds of hosts, of which each has a member of every group:
 *
 *   1. The *victim* is away, until the logs have dropped what it misses. Its journals leave entries out.
 *   2. It comes back, and takes snapshots at a mark. From now on, the disks of f *slow* hosts hardly make anything durable.
 *   3. The mark is complete: the victim and the f *late* hosts, which are neither slow nor the victim, hold it. The victim's
 *      snapshot of one group counts. Its snapshot of a child of that group does not count yet.
 *   4. The power of all hosts is cut. The late hosts stay away, so the cluster recovers from the victim and the slow hosts. The
 *      parent's snapshot has replaced the entries that the child lacks: the child finds them only in its snapshot at the mark.
 *
 * Called by `power.ts`.
 */
import type { DurableHost } from './durable-host.js';

/** The disks of slow hosts take so many times as long; and that of the victim, once it has taken its snapshots. */
const SLOWNESS = 5000;
const VICTIM_SLOWNESS = 500;
/** It is given up so long after the victim has come back. */
const PATIENCE_US = 20_000;

export class MarkAmbush {
  private state: 'away' | 'waits for snapshots' | 'waits for one to count' | 'over' = 'away';
  private untilUs = Number.POSITIVE_INFINITY;
  private readonly slow: readonly DurableHost[];
  /** Those that come back late. */
  readonly late: readonly DurableHost[];

  constructor(
    hosts: readonly DurableHost[],
    readonly victim: DurableHost,
    private readonly parents: readonly number[],
    f: number,
  ) {
    const others = hosts.filter((host) => host !== victim);
    this.slow = others.slice(0, f);
    this.late = others.slice(f);
  }

  /** The journal of the victim has made a step. @returns is it time to cut the power? */
  isDue(nowUs: number): boolean {
    const { victim, slow, parents } = this;
    const journals = parents.map((_, group) => victim.journalOf(group)!);
    /** Does a snapshot at a mark wait until it counts? */
    const isHeld = (group: number): boolean =>
      journals[group].awaitsMark && journals[group].heldMark > 0;
    if (nowUs > this.untilUs) this.end();
    switch (this.state) {
      case 'away':
        this.untilUs = nowUs + PATIENCE_US;
        for (const host of slow) host.slowness = SLOWNESS;
        this.state = 'waits for snapshots';
        return false;
      case 'waits for snapshots':
        if (!parents.some((parent, group) => parent >= 0 && isHeld(group) && isHeld(parent))) {
          return false;
        }
        victim.slowness = VICTIM_SLOWNESS;
        this.state = 'waits for one to count';
        return false;
      case 'waits for one to count':
        return parents.some(
          (parent, group) => parent >= 0 && isHeld(group) && !journals[parent].awaitsMark,
        );
      case 'over':
        return false;
    }
  }

  end(): void {
    if (this.state === 'over') return;
    this.state = 'over';
    for (const host of [this.victim, ...this.slow]) host.slowness = 1;
  }
}
