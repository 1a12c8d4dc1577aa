/** A message-passing protocol, for those that run it: the simulator, and the processes of a benchmark. */
import type { CallListener, Client } from './client.js';
import type { Network, Observer, Participant } from './network.js';

export interface Protocol {
  group(group: number, network: Network, observer: Observer): Participant;
  client(client: number, network: Network, listener: CallListener): Client;
  /** Do these two groups send messages to each other? */
  areLinked(group: number, other: number): boolean;
}
