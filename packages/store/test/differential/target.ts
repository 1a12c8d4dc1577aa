import type { Wire } from './wire.js';

/** Something that runs commands: a server, or an engine in this process. */
export interface Target {
  /** Runs commands one after the other. @returns their replies */
  run(commands: readonly (readonly string[])[], protocol: 2 | 3): Promise<Wire[]>;
  close(): void;
}
