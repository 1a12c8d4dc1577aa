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

/** All clients are served this often, whether they have been notified or not: they may have to send again. */
const ALL_CLIENTS_US = 5000;

export function dutyOf(target: LoadTarget, options: LoadOptions, loads: readonly Load[]): Duty {
  return dutyFor(together(loads), target, options, loads);
}

/**
 * The same, but clients are served only once a replica has notified them. That leaves the cores to the replicas while all clients
 * wait for an answer.
 */
export function sparingDutyOf(
  target: LoadTarget,
  options: LoadOptions,
  loads: readonly Load[],
): Duty {
  // Across machines each client has an arena of its own.
  const agent = target.wire === undefined ? notified(target, loads) : together(loads);
  return dutyFor(agent, target, options, loads);
}

function dutyFor(
  agent: Agent,
  { arena, map, pacing, wire }: LoadTarget,
  options: LoadOptions,
  loads: readonly Load[],
): Duty {
  const host = map.hostOf(loads[0].process);
  const words = {
    parked: map.host(host) + HOST.parked,
    ready: map.readyOf(host),
    readyLater: map.readyLaterOf(host),
    allParked: map.allParked,
  };
  const paced = pacingOf(options, pacing);
  return new Duty(arena, words, [agent], paced, nowUs, undefined, wire);
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

/** The clients that replicas have notified, and now and then all, as one agent of the thread. */
function notified({ arena: { words }, map }: LoadTarget, loads: readonly Load[]): Agent {
  const flags = loads.map(({ process }) => map.ready(process));
  let allUs = Number.NEGATIVE_INFINITY;
  return {
    doWork: (now) => {
      const servesAll = now - allUs >= ALL_CLIENTS_US;
      if (servesAll) allUs = now;
      let work = 0;
      for (let i = 0; i < loads.length; i++) {
        // The duty cycle itself clears the flag of the first.
        if (i > 0 && words[flags[i]] === 0 && !servesAll) continue;
        Atomics.store(words, flags[i], 0);
        work += loads[i].doWork(now);
      }
      return work;
    },
  };
}
