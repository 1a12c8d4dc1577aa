/** The scripts and libraries of functions that a shard knows. */

import { createHash } from 'node:crypto';
import type { Bytes } from '../../resp/reply.js';

/** As in Redis 7.4: so many scripts are known that only EVAL has brought. Who wants to keep one uses SCRIPT LOAD. */
const EVALUATED_MAX = 500;

export interface ScriptState {
  /** By their SHA-1, as a text. */
  readonly bodies: Map<string, Bytes>;
  /** Those of them that only EVAL has brought, from the oldest one on. */
  readonly evaluated: Set<string>;
  /** The codes of libraries by their names. */
  readonly libraries: Map<Bytes, Bytes>;
}

export class Scripts {
  readonly bodies: Map<string, Bytes>;
  readonly libraries: Map<Bytes, Bytes>;
  readonly #evaluated: Set<string>;

  constructor(
    state: ScriptState = { bodies: new Map(), evaluated: new Set(), libraries: new Map() },
  ) {
    this.bodies = state.bodies;
    this.libraries = state.libraries;
    this.#evaluated = state.evaluated;
  }

  get state(): ScriptState {
    return { bodies: this.bodies, evaluated: this.#evaluated, libraries: this.libraries };
  }

  /** It is kept. @returns its SHA-1 */
  add(body: Bytes): string {
    const sha = sha1(body);
    this.#evaluated.delete(sha);
    if (!this.bodies.has(sha)) this.bodies.set(sha, body);
    return sha;
  }

  /** It is kept until there are too many newer ones. @returns its SHA-1 */
  addEvaluated(body: Bytes): string {
    const sha = sha1(body);
    if (this.bodies.has(sha)) return sha;
    this.bodies.set(sha, body);
    this.#evaluated.add(sha);
    if (this.#evaluated.size > EVALUATED_MAX) {
      const [oldest] = this.#evaluated;
      this.#evaluated.delete(oldest);
      this.bodies.delete(oldest);
    }
    return sha;
  }

  clear(): void {
    this.bodies.clear();
    this.#evaluated.clear();
  }
}

export function sha1(text: Bytes): string {
  return createHash('sha1').update(text, 'latin1').digest('hex');
}
