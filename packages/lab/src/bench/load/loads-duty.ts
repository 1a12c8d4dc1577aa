/** The duty cycle of a thread that runs the clients of a load: it serves them, spins, and sleeps. */
import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import { type Agent, Duty, type Pacing } from 'tram-multicast/internal/hosting/duty.js';
import { HOST } from 'tram-multicast/internal/memory/arena.js';
import type { Load, LoadOptions } from './load.js';
import type { LoadTarget } from './target.js';

/** The thread sleeps on the word of its first client only, so it polls the others this often. */
const MANY_CLIENTS_US = 100;
/** A client with one message in flight polls for its reply for so long, as the client of the library does. */
const ALONE_SPIN_US = 2000;
/** It does so however many hosts are awake. */
const ENOUGH = Number.POSITIVE_INFINITY;

export function dutyOf(target: LoadTarget, options: LoadOptions, loads: readonly Load[]): Duty {
  const { arena, map, pacing, wire } = target;
  const host = map.hostOf(loads[0].process);
  const words = {
    parked: map.host(host) + HOST.parked,
    ready: map.readyOf(host),
    readyLater: map.readyLaterOf(host),
    allParked: map.allParked,
  };
  const paced = pacingOf(options, pacing);
  return new Duty(arena, words, [together(loads)], paced, nowUs, undefined, wire);
}

function pacingOf({ clients, outstanding }: LoadOptions, usual: Pacing): Pacing {
  if (clients > 1)
    return { ...usual, heartbeatUs: MANY_CLIENTS_US, quietHeartbeatUs: MANY_CLIENTS_US };
  return outstanding > 1 ? usual : { ...usual, spinUs: ALONE_SPIN_US, cores: ENOUGH };
}

/** All clients as one agent of the thread. */
function together(loads: readonly Load[]): Agent {
  if (loads.length === 1) return loads[0];
  return {
    doWork: (now) => {
      let work = 0;
      for (const load of loads) work += load.doWork(now);
      return work;
    },
  };
}
