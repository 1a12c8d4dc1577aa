/**
 * Provokes violations of real-time order. When a client receives a reply, another client at once reads a group that must
 * show the same: the reply of a group shows every message that the group had delivered by then, each of these shows what
 * its other destinations had delivered before it, and so on. Called by `world.ts`.
 *
 * `drawProbe` walks back in the ledger of the whole run to choose the group to read. A violation needs a message that the
 * reply shows and that the read group has not delivered yet. If the walk meets such a message, it ends there.
 */
import type { Ledger, Sent } from './ledger.js';
import type { Random } from './random.js';

/** The longest walk goes through so many groups. */
const HOPS_MAX = 3;
/** How many messages a walk goes back in a group at most: older messages are usually delivered everywhere. */
const BACK_MAX = 8;

/** The group to read after `group` has replied to `sent`; undefined if the reply shows no message of another group. */
export function drawProbe(
  random: Random,
  { orders }: Ledger,
  sent: Sent,
  group: number,
): number | undefined {
  let target: number | undefined;
  let at = group;
  let last = sent;
  for (let hops = random.between(1, HOPS_MAX); hops > 0; hops--) {
    const place = orders[at].lastIndexOf(last);
    const shown = drawShared(random, orders[at], place, at);
    if (shown === undefined) return target;
    const others = orders.flatMap((_, other) =>
      other !== at && shown.isFor(other) ? [other] : [],
    );
    target = random.pick(others);
    if (!orders[target].includes(shown)) return target;
    at = target;
    last = shown;
  }
  return target;
}

/** One of the last messages of a group, up to `place`, that other groups deliver too. */
function drawShared(
  random: Random,
  order: readonly Sent[],
  place: number,
  group: number,
): Sent | undefined {
  const first = Math.max(0, place - BACK_MAX);
  const shared = order.slice(first, place + 1).filter((sent) => sent.hasOthersThan(group));
  if (shared.length === 0) return undefined;
  return random.percent(50) ? shared.at(-1) : random.pick(shared);
}
