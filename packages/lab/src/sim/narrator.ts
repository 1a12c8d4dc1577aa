/**
 * Describes the events of a simulated world, one line for each, in the terms of the paper. The scenario interpreter
 * calls it after every event of the world.
 *
 * It reads the world's trace, its transitions and the clients' open calls, and never changes the world. It leaves out
 * events that happen all the time, and those that follow from another line.
 */
import type { TraceEvent } from 'tram-multicast/internal/check/events.js';
import { HEAD_WORDS, word } from 'tram-multicast/internal/memory/record.js';
import type { Call } from 'tram-multicast/internal/protocol/data-path/client.js';
import type { Transition } from 'tram-multicast/internal/protocol/edges.js';
import { entryGroupOf, MESSAGE, numberIn } from 'tram-multicast/internal/protocol/layout.js';
import { describeBallot } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { contains, GROUPS_MAX } from 'tram-multicast/internal/protocol/overlay.js';
import type { ClientHost, Host, ReplicaHost } from './hosts.js';
import type { Sent } from './ledger.js';
import type { World } from './world.js';

/** Describes each transition. `ballot` is the highest that the replica has promised. */
export const DEEDS: Partial<Record<Transition, (ballot: string) => string>> = {
  campaigned: (ballot) => `campaigns with ballot ${ballot}`,
  granted: (ballot) => `grants ballot ${ballot}`,
  refused: (ballot) => `refuses a request: it has promised ${ballot}`,
  preempted: (ballot) => `ends its attempt: it has promised ${ballot}`,
  'attempt refused': () => 'ends its attempt: it was refused',
  'grant dropped on re-check': () => 'drops a grant: its granter has changed since',
  'adopted own log': () => 'goes on with its own log',
  'adopted a peer log': () => "goes on with another member's log",
  'adoption failed': () => 'drops a grant: its log can no longer be copied',
  'late member installed': () => 'brings up a member that granted late',
  'write refused': () => 'learns that a log write was refused',
  'write lost': () => 'learns that a log write was lost',
  'outbid a higher promise': () => 'must outbid: a member is bound to another ballot',
  'stepped down': (ballot) => `steps down: it has promised ${ballot}`,
  'log truncated': () => 'drops the oldest part of its log',
  'backlog fetched': () => 'sends entries of its backlog',
  'left behind': () => 'is left behind: the log no longer has what it needs',
  resumed: (ballot) => `resumes: it has promised ${ballot}, and its state is gone`,
  'resumed from a left snapshot': () => 'restores the state that it left when it stopped',
  recovering: () => 'recovers: it has forgotten what it promised',
  'recovery found a leader': () => 'joins the leader it found',
  recovered: () => 'is a member again',
  'session replaced': () => "opens a client's new session",
  'replies sent again': () => 'sends the replies it keeps again',
  'reply held': () => 'holds a reply: the gate has not passed its entry',
  'held reply sent': () => 'sends replies that it held: the gate has passed their entries',
  'journal full': () => 'delivers nothing more: its journal is full, and the quorum needs it',
  'journal left out': () => 'leaves entries out of its journal, which is full',
  'new journal waits': () => 'may not begin its new journal yet: a lost one may have had more',
  'journal replaced': () => 'may begin its new journal: it has all that a lost one had',
  'mark proposed': () => 'proposes a mark for all groups: a journal has left entries out',
  'client resent': () => 'writes its unanswered messages again',
};

interface OpenCall {
  readonly host: ClientHost;
  readonly call: Call;
  readonly number: number;
  readonly id: string;
  readonly text: string;
  /** How many groups have not replied. */
  missing: number;
}

export class Narrator {
  /** Lines since the last `take`. */
  private lines: string[] = [];
  private world!: World;
  private eventsDescribed = 0;
  private calls: OpenCall[] = [];
  private readonly textOf = new Map<string, string>();
  private listener: ((deed: string) => void) | undefined;

  attach(world: World): void {
    this.world = world;
  }

  /** Describe a transition of `participant`. */
  onTransition = (participant: number, what: Transition): void => {
    const deed = DEEDS[what];
    if (deed === undefined) return;
    this.catchUp();
    const replica: ReplicaHost['replica'] | undefined = this.world.replicas[participant]?.replica;
    const ballot = describeBallot(replica?.member.promised ?? 0);
    this.tell(`${this.participantName(participant)} ${deed(ballot)}`);
  };

  /** Add a line with the current time, and pass it to the listener. @param deed  without the time */
  tell(deed: string): void {
    this.lines.push(`${String(this.world.nowUs).padStart(6)} µs  ${deed}`);
    this.listener?.(deed);
  }

  /** Add lines that a command prints, without a time. */
  print(...lines: string[]): void {
    this.lines.push(...lines);
  }

  listen(listener: ((deed: string) => void) | undefined): void {
    this.listener = listener;
  }

  take(): string[] {
    const { lines } = this;
    this.lines = [];
    return lines;
  }

  /** Describe new events of the trace, and calls that have been answered. */
  catchUp(): void {
    const trace = this.world.ledger.trace!;
    while (this.eventsDescribed < trace.length) {
      const deed = this.deedOf(trace[this.eventsDescribed++]);
      if (deed !== undefined) this.tell(deed);
    }
    const answered = this.calls.filter(
      ({ call, number }) => !call.isOpen || call.number !== number,
    );
    if (answered.length === 0) return;
    this.calls = this.calls.filter((call) => !answered.includes(call));
    for (const { host, text, call } of answered) {
      this.tell(
        `${this.name(host)} has all replies to ${text}, from ${destinations(call).join(', ')}`,
      );
    }
  }

  private deedOf(event: TraceEvent): string | undefined {
    switch (event.event) {
      case 'multicast':
        // What a command sends needs no line of its own.
        if (this.textOf.has(event.id)) return undefined;
        return `${event.client} multicasts ${event.id} to ${event.destinations.join(', ')}`;
      case 'leader':
        return `${event.replica} leads with ballot ${event.ballot}`;
      case 'deliver':
        return `${event.replica} delivers ${this.nameOf(event.id)}`;
      case 'touch':
        return `group ${event.group} relays ${this.nameOf(event.id)}`;
      case 'answered':
        return this.deedOfReply(event.id, event.group);
      case 'restore':
        if (event.count === 0) return undefined;
        return `${event.replica} restores a snapshot of ${event.from}, after ${event.count} deliveries`;
      default:
        return undefined;
    }
  }

  /** The last reply needs no line of its own: then all replies are there. */
  private deedOfReply(id: string, group: number): string | undefined {
    const open = this.calls.find((call) => call.id === id);
    if (open === undefined || --open.missing === 0) return undefined;
    return `${this.name(open.host)} has the reply to ${open.text} from ${group}`;
  }

  // --- messages and their names --------------------------------------------------------------

  sent(host: ClientHost, sent: Sent): void {
    const text = JSON.stringify(new TextDecoder().decode(sent.payload));
    this.textOf.set(sent.id, text);
    const call = host.client.lastCall;
    const missing = destinations(call).length;
    this.calls.push({ host, call, number: call.number, id: sent.id, text, missing });
  }

  forget(host: Host): void {
    this.calls = this.calls.filter((call) => call.host !== host);
  }

  /** The messages that clients still wait for, one line each. */
  get unanswered(): string[] {
    return this.calls.map(({ host, text }) => `${this.name(host)} still waits for ${text}`);
  }

  textOfSent(sent: Sent | undefined): string {
    return sent === undefined ? '?' : this.nameOf(sent.id);
  }

  /** The text of a message; its id if the workload has drawn the message. */
  nameOf(id: string): string {
    return this.textOf.get(id) ?? id;
  }

  /** Replace the ids of messages by their texts. */
  inTexts(words: string): string {
    return words.replace(/\bc\d+:\d+\.\d+\b/g, (id) => this.nameOf(id));
  }

  /** The texts of the complete entries in a replica's log. */
  logOf(host: ReplicaHost): string[] {
    const { member } = host.replica;
    const ring = member.log.current();
    if (ring === undefined) return [];
    const { basePosition, endPosition } = member.log.extentOf(ring, member.nextToDeliver);
    const texts: string[] = [];
    for (let at = basePosition; at !== endPosition; at = (at + word(ring, at)) | 0) {
      const message = at + HEAD_WORDS;
      const session = word(ring, message + MESSAGE.session);
      const series = word(ring, message + MESSAGE.series);
      const number = numberIn(series, word(ring, message + MESSAGE.number));
      const sent = this.world.ledger.find(session, entryGroupOf(series), number);
      texts.push(this.textOfSent(sent));
    }
    return texts;
  }

  name(host: Host): string {
    return this.participantName(host.participant);
  }

  private participantName(participant: number): string {
    const { replicas } = this.world;
    if (participant >= replicas.length) return `c${participant - replicas.length}`;
    const { group, member } = replicas[participant];
    return `${group}/${member}`;
  }
}

function destinations({ destinationsLow, destinationsHigh }: Call): number[] {
  const groups = Array.from({ length: GROUPS_MAX }, (_, group) => group);
  return groups.filter((group) => contains(destinationsLow, destinationsHigh, group));
}
