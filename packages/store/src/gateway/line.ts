import type { ReplyWriter } from '../resp/writer.js';
import type { Client } from './client.js';

/** The connection, as the conversation sees it. */
export interface Line {
  readonly client: Client;
  /** Where replies are written to. */
  output(): ReplyWriter;
  /** Something was written. */
  flushSoon(): void;
  /** The client does not read what was written. */
  isFull(): boolean;
  /** Sends what was written, then ends the connection. */
  end(): void;
  pauseReading(): void;
  resumeReading(): void;
}
