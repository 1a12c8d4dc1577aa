/** The scripts and libraries of functions that a shard knows. */

import { createHash } from 'node:crypto';
import type { Bytes } from '../../resp/reply.js';

/** As in Redis 7.4: so many scripts are known that only EVAL has brought. Who wants to keep one uses SCRIPT LOAD. */
const EVALUATED_MAX = 500;

/**
 * A script counts as announced until there were so many newer announcements. What a shard has evaluated since then was announced as well, at
 * most so many announcements earlier. Together these are half of what a shard keeps, so none has forgotten the script. The other half is for
 * scripts that are not announced yet, and for EVAL in MULTI, which is not announced.
 */
const ANNOUNCEMENTS_MAX = EVALUATED_MAX / 4;

export interface ScriptState {
  /** By their SHA-1, as a text. */
  readonly bodies: Map<string, Bytes>;
  /** Those of them that only EVAL has brought, in the order in which they were last evaluated or announced. */
  readonly evaluated: Map<string, Evaluated>;
  /** How many announcements there were. */
  readonly announcements: number;
  /** The codes of libraries by their names. */
  readonly libraries: Map<Bytes, Bytes>;
}

/** The number of its last announcement; undefined if there was none. */
type Evaluated = number | undefined;

export class Scripts {
  readonly bodies: Map<string, Bytes>;
  readonly libraries: Map<Bytes, Bytes>;
  readonly #evaluated: Map<string, Evaluated>;
  #announcements: number;

  constructor(
    state: ScriptState = {
      bodies: new Map(),
      evaluated: new Map(),
      announcements: 0,
      libraries: new Map(),
    },
  ) {
    this.bodies = state.bodies;
    this.libraries = state.libraries;
    this.#evaluated = state.evaluated;
    this.#announcements = state.announcements;
  }

  get state(): ScriptState {
    const { bodies, libraries } = this;
    return {
      bodies,
      evaluated: this.#evaluated,
      announcements: this.#announcements,
      libraries,
    };
  }

  /** It is kept. @returns its SHA-1 */
  add(body: Bytes): string {
    const sha = sha1(body);
    this.#evaluated.delete(sha);
    if (!this.bodies.has(sha)) this.bodies.set(sha, body);
    return sha;
  }

  /** This shard evaluates it. It is kept until there are too many newer ones. @returns its SHA-1 */
  addEvaluated(body: Bytes): string {
    const sha = sha1(body);
    this.#keepForNow(sha, body, this.#evaluated.get(sha));
    return sha;
  }

  /** Some shard evaluates it, and all shards are told. It is kept as one that this shard evaluates. @returns its SHA-1 */
  announce(body: Bytes): string {
    const sha = sha1(body);
    this.#keepForNow(sha, body, ++this.#announcements);
    return sha;
  }

  /** Whether all shards know it. */
  isAnnounced(sha: string): boolean {
    // SCRIPT LOAD has told all shards.
    if (!this.#evaluated.has(sha)) return this.bodies.has(sha);
    const announced = this.#evaluated.get(sha);
    return announced !== undefined && announced + ANNOUNCEMENTS_MAX > this.#announcements;
  }

  /** It becomes the newest one, unless it is kept anyway. */
  #keepForNow(sha: string, body: Bytes, announced: Evaluated): void {
    const evaluated = this.#evaluated;
    if (this.bodies.has(sha) && !evaluated.has(sha)) return;
    this.bodies.set(sha, body);
    evaluated.delete(sha);
    evaluated.set(sha, announced);
    if (evaluated.size <= EVALUATED_MAX) return;
    const [[oldest]] = evaluated;
    evaluated.delete(oldest);
    this.bodies.delete(oldest);
  }

  clear(): void {
    this.bodies.clear();
    this.#evaluated.clear();
  }
}

export function sha1(text: Bytes): string {
  return createHash('sha1').update(text, 'latin1').digest('hex');
}
