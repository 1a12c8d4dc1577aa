/** The scripts and libraries of functions that a shard knows. */

import { createHash } from 'node:crypto';
import type { Bytes } from '../../resp/reply.js';

export interface ScriptState {
  /** By their SHA-1, as a text. */
  readonly bodies: Map<string, Bytes>;
  /** The codes of libraries by their names. */
  readonly libraries: Map<Bytes, Bytes>;
}

export class Scripts {
  readonly bodies: Map<string, Bytes>;
  readonly libraries: Map<Bytes, Bytes>;

  constructor(state: ScriptState = { bodies: new Map(), libraries: new Map() }) {
    this.bodies = state.bodies;
    this.libraries = state.libraries;
  }

  get state(): ScriptState {
    return { bodies: this.bodies, libraries: this.libraries };
  }

  /** @returns its SHA-1 */
  add(body: Bytes): string {
    const sha = sha1(body);
    if (!this.bodies.has(sha)) this.bodies.set(sha, body);
    return sha;
  }
}

export function sha1(text: Bytes): string {
  return createHash('sha1').update(text, 'latin1').digest('hex');
}
