/** Sends what was written in one turn of the event loop: one write for each connection. */

export interface Flushed {
  flush(): void;
}

export class Flushes {
  #waiting: Flushed[] = [];

  /** To be called at most once for each connection and turn. */
  add(connection: Flushed): void {
    if (this.#waiting.length === 0) setImmediate(() => this.#flush());
    this.#waiting.push(connection);
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const connection of waiting) connection.flush();
  }
}
