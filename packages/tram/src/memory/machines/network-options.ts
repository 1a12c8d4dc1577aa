/** What a `Network` is made of, and what its parts need of its user. */
import type { Arena, ArenaMap } from '../arena.js';
import type { SocketAddress } from '../fabric/socket-address.js';
import type { BufferWords } from './buffers.js';
import type { AddressBook } from './known-hosts.js';

/** Who we are: one of `CALLER` (`handshake.ts`), and the number of the host or of the client's slot. */
export interface Caller {
  readonly caller: number;
  readonly number: number;
}

/** Assigns slots to clients. */
export interface SlotKeeper {
  /** Does this host assign slots, as far as it knows? Not before it has started its replicas. */
  readonly isOpen: boolean;
  /** Does this host not know yet in which era its replicas will run, and so which sessions have ended? */
  readonly awaitsEra: boolean;
  /** Assign a free slot to a new client, if there is one. */
  take(): { readonly slot: number; readonly session: number } | undefined;
  /** Is the slot still that of the client to which we, or another host, assigned it in that session? */
  isStillOf(slot: number, session: number): boolean;
  /** The client has connected again. */
  returns(slot: number, session: number): void;
  /** The connection to the client has ended. */
  leaves(slot: number): void;
}

export interface NetworkOptions {
  readonly map: ArenaMap;
  /** Every peer that is connected can read and write all of it. */
  readonly arena: Arena & { readonly address: number };
  readonly self: Caller;
  /** The address from which we dial, and at which we listen if there is a port. */
  readonly address: string;
  readonly port?: number;
  /** Where the hosts listen. */
  readonly hosts: readonly SocketAddress[];
  /** What the log calls them; their numbers by default. */
  readonly names?: readonly string[];
  readonly secret: Uint8Array;
  readonly digest: Uint8Array;
  /** Of a host. */
  readonly addresses?: AddressBook;
  readonly provider?: string;
  /** A peer that owes us an answer for longer than this is disconnected. */
  readonly patienceUs: number;
  /**
   * Maps the arena of another host of this machine; undefined for hosts of other machines, or if that arena is not there. Given
   * only if this machine runs several hosts.
   */
  readonly mapArenaOf?: (host: number) => Pick<Arena, 'words' | 'close'> | undefined;
  /** How much may be in flight to and from a host. */
  readonly bufferWords: (host: number) => BufferWords;
  readonly slots?: SlotKeeper;
  readonly log: (level: 'info' | 'warn', text: string) => void;
  /** A caller was refused. Anybody who reaches our port can cause this, any number of times. */
  readonly onRefusal?: (text: string) => void;
  /** A host refuses us because it has seen newer memory of this host. @param other  its name */
  readonly onNewerMemory?: (other: string) => void;
  readonly nowUs: () => number;
}

/** Why a host is out of reach that has neither answered nor refused us. */
export const NO_ANSWER = 'no answer';

/** For the log. @param host  clients are numbered after the hosts of replicas */
export function nameOfHost({ map, names }: NetworkOptions, host: number): string {
  return host < map.hosts ? (names?.[host] ?? `host ${host}`) : `client ${host - map.hosts}`;
}
