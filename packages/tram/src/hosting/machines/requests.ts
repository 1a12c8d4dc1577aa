/**
 * What a host can be asked to do from another machine. The asker writes the word `HOST.request` in the arena of the host:
 * a count of requests, which makes it differ from the word before, and what is asked. The host looks at it with every
 * heartbeat. A word that it found when it started is a request to an earlier start.
 *
 * Every writer of that word knows the secret of the cluster, and could as well write to the logs of the replicas.
 */
import { type ArenaMap, HOST } from '../../memory/arena.js';
import type { Agent } from '../duty.js';

/**
 * `forget`: end, and remove the memory. `restart-fresh`: the same, and start again; but it keeps the memory if too few other
 * hosts have copies. With a journal, `recover`: write everything to the journal, and begin without memory, because the cluster
 * is to be recovered from the journals.
 */
export type HostRequest = 'recover' | 'stop' | 'kill' | 'restart' | 'restart-fresh' | 'forget';

/** By the lowest bits of the word. Of two requests the later one in this list counts: what was promised is kept. */
const REQUESTS: readonly (HostRequest | undefined)[] = [
  undefined,
  'recover',
  'restart',
  'stop',
  'restart-fresh',
  'forget',
  'kill',
];
const REQUEST_BITS = 3;

/** @param before  the last request */
export function requestWord(before: number, request: HostRequest): number {
  return (((before >> REQUEST_BITS) + 1) << REQUEST_BITS) | REQUESTS.indexOf(request);
}

/** The host's side. */
export class Requests implements Agent {
  private readonly at: number;
  private seen: number;
  /** The place in `REQUESTS` of what it has obeyed. */
  private obeyed = 0;

  constructor(
    private readonly words: Int32Array,
    map: ArenaMap,
    host: number,
    private readonly obey: (request: HostRequest) => void,
  ) {
    this.at = map.host(host) + HOST.request;
    this.seen = Atomics.load(words, this.at);
  }

  doWork(): number {
    const word = Atomics.load(this.words, this.at);
    if (word === this.seen) return 0;
    this.seen = word;
    const place = word & ((1 << REQUEST_BITS) - 1);
    const request = REQUESTS[place];
    if (request === undefined || place <= this.obeyed) return 0;
    this.obeyed = place;
    this.obey(request);
    return 0;
  }
}
