/**
 * Which actions are independent: in whatever order two of them happen, the same state follows, and neither makes the
 * other possible or impossible.
 *
 * An action *touches* the participants whose objects, completions, region or permission it reads or changes: those that
 * take a step in it, the one at which something lands, and the poster if it is told of that. Actions that touch a common
 * participant depend on each other. A participant that is touched touches those that direct links lead to, and those
 * from which direct links lead to it.
 *
 * Links need a closer look. A participant that steps only appends to the links from it, and a landing only takes from the
 * front, so these two do not disturb each other. But two landings of one link do, and so does what clears a link. What
 * may happen only so often, to one of several participants, depends on itself.
 *
 * The checks of `orders.ts` compare what one replica delivers with what others have delivered. In whatever order two
 * deliveries happen, the second one finds the same violation.
 */
import type { Action, Kind } from './action.js';
import { mayBeReported } from './memory.js';
import type { SmallWorld } from './small-world.js';

const COUNTED: readonly Kind[] = [
  'pause',
  'resume',
  'leave',
  'die',
  'restart',
  'beat',
  'break',
  'session',
];
const ENDS: readonly Kind[] = ['resume', 'leave', 'restart', 'die', 'session'];

/** What an action touches, in the state in which it was chosen. All are sets of bits. */
export interface Footprint {
  readonly action: Action;
  readonly participants: number;
  /** Participants whose links it takes from, and whose links it clears. */
  readonly takesFrom: number;
  readonly clears: number;
  readonly counts: number;
}

export function footprint(world: SmallWorld, action: Action): Footprint {
  const exact = exactFootprint(world, action);
  return { ...exact, participants: world.reachOf(exact.participants) };
}

function exactFootprint(world: SmallWorld, action: Action): Footprint {
  const { kind, participant, more } = action;
  const poster = 1 << participant;
  const counts = COUNTED.includes(kind) ? 1 << COUNTED.indexOf(kind) : 0;
  if (kind === 'land' || kind === 'stop') {
    const [operation] = world.fabric.link(participant, more).operations;
    const target = 1 << more;
    const participants = mayBeReported(operation) ? target | poster : target;
    return { action, participants, takesFrom: poster, clears: 0, counts };
  }
  if (kind === 'arrive') {
    const members = world.arrivals
      .get(participant)!
      .links.reduce((set, { to }) => set | (1 << to), 0);
    return { action, participants: members | poster, takesFrom: 0, clears: 0, counts };
  }
  if (kind === 'break')
    return { action, participants: poster, takesFrom: 0, clears: poster, counts };
  // What was under way to the region of a client that has gone is lost.
  const clears = kind === 'session' ? -1 : ENDS.includes(kind) ? poster : 0;
  return { action, participants: poster, takesFrom: 0, clears, counts };
}

export function areIndependent(a: Footprint, b: Footprint): boolean {
  if ((a.participants & b.participants) !== 0 || (a.counts & b.counts) !== 0) return false;
  return (a.takesFrom & b.clears) === 0 && (a.clears & b.takesFrom) === 0;
}
