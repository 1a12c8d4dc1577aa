/** Tells a script in words: each action, the transitions that follow from it, and what is delivered. */

import type { Transition } from 'tram-multicast/internal/protocol/edges.js';
import { type Layout, RINGS_PER_WRITER } from 'tram-multicast/internal/protocol/layout.js';
import { describeBallot } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { DEEDS } from '../sim/narrator.js';
import { type Action, format, letterOf } from './action.js';
import type { Operation } from './memory.js';
import type { Scope } from './scope.js';
import type { Found } from './search.js';
import { replay } from './shorten.js';
import type { SmallWorld, Watcher } from './small-world.js';

class Narrator implements Watcher {
  readonly lines: string[] = [];
  private world!: SmallWorld;
  private number = 0;

  event(action: Action, world: SmallWorld): void {
    this.world = world;
    const number = String(++this.number).padStart(3);
    this.lines.push(`${number}  ${format(action).padEnd(4)} ${describe(action, world)}`);
  }

  transition(participant: number, what: Transition): void {
    const deed = DEEDS[what];
    // Before the first action, the world is being prepared.
    if (deed === undefined || this.world === undefined) return;
    const promised = this.world.participants[participant].replica?.member.promised ?? 0;
    this.add(`${letterOf(participant)} ${deed(describeBallot(promised))}`);
  }

  delivered(participant: number, message: string): void {
    if (this.world !== undefined) this.add(`${letterOf(participant)} delivers ${message}`);
  }

  private add(deed: string): void {
    this.lines.push(`            ${deed}`);
  }
}

/** @returns the story, and the violation that ends it, if there is one */
export function narrate(
  scope: Scope,
  actions: readonly Action[],
): { readonly lines: readonly string[]; readonly found: Found | undefined } {
  const narrator = new Narrator();
  const found = replay(scope, actions, { watcher: narrator });
  return { lines: narrator.lines, found };
}

function describe({ kind, participant, more }: Action, world: SmallWorld): string {
  const name = letterOf(participant);
  switch (kind) {
    case 'step':
      return `${name} takes a step`;
    case 'land':
    case 'stop': {
      const link = world.fabric.link(participant, more);
      const what = describeOperation(link.operations[0], world.layout);
      const refused = kind === 'stop' ? ' (refused and stopped)' : ' (refused)';
      return `${name} → ${letterOf(more)}: ${what}${world.fabric.isRefused(link) ? refused : ''}`;
    }
    case 'break':
      return `the link from ${name} to ${letterOf(more)} breaks`;
    case 'arrive':
      return `the message of the client ${name} arrives`;
    case 'pause':
      return `${name} pauses`;
    case 'continue':
      return `${name} goes on`;
    case 'campaign':
      return `${name} campaigns`;
    case 'beat':
      return `time passes for ${name}: it sends a heartbeat, reads rows, and asks again`;
    case 'resume':
      return world.participants[participant].replica === undefined
        ? `${name} resumes with the memory that it left`
        : `${name} is killed, and resumes with the memory that it left`;
    case 'leave':
      return `${name} stops in an orderly way, and resumes with its memory and the snapshot that it left`;
    case 'die':
      return `${name} is killed in a step, before its post or change of permission number ${more + 1}`;
    case 'restart':
      return `${name} loses its memory and restarts`;
    case 'session':
      return `the client ${name} crashes, and a new session takes its slot`;
  }
}

/** What an operation on a replica's region is. */
function describeOperation({ isRead, at, count, words }: Operation, layout: Layout): string {
  const { replicas, clients } = layout.sizes;
  if (isRead) return at === layout.row ? 'a read of the row' : 'a read of the log';
  for (let member = 0; member < replicas; member++) {
    if (at === layout.memberNotification(member)) return 'a notification';
    if (at === layout.leadRequest(member)) return 'a request to lead';
    if (at === layout.leadGrant(member)) return 'an answer to a request to lead';
    if (at === layout.snapshotRequest(member)) return 'a request for a snapshot';
    if (at === layout.snapshotChunk(member)) return 'a chunk of a snapshot';
    if (at === layout.feedStart(member)) return 'the start of the feed';
    if (at === layout.feedEnd(member)) return 'the end of the feed';
    if (at >= layout.feedRing(member) && at < layout.feedRing(member) + layout.feedWords)
      return 'entries of the feed';
    for (let ring = 0; ring < RINGS_PER_WRITER; ring++) {
      const control = layout.logControl(member, ring);
      if (at === control) return words[0] === 0 ? 'the end of an old log' : 'the marker of the log';
      if (at === control + 1) return count > 1 ? 'the start of a log' : 'the base of the log';
      if (at === control + 2) return 'the decided index';
      const log = layout.logRing(member, ring);
      if (at >= log && at < log + layout.logWords) return 'entries of the log';
    }
  }
  for (let client = 0; client < clients; client++) {
    if (at === layout.clientNotification(client)) return 'a notification';
    if (at === layout.inboxControl(client)) return 'the number of the session';
    const inbox = layout.inboxRing(client);
    if (at >= inbox && at < inbox + layout.inboxWords) return 'a message';
  }
  return 'a reply';
}
