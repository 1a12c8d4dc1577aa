/** Describes what lies in the memory of a replica: its log, its inboxes and the feeds from its parent. */
import type { Narrator } from 'tram-lab/dist/sim/narrator.js';
import type { World } from 'tram-lab/dist/sim/world.js';
import {
  distance,
  extend,
  framedWords,
  HEAD_WORDS,
  numberAt,
  ringAt,
  type Window,
  word,
} from 'tram-multicast/internal/memory/record.js';
import { decidedIndex } from 'tram-multicast/internal/protocol/data-path/delivery.js';
import {
  CANCEL,
  entryGroupOf,
  FEED_START,
  INBOX_CONTROL,
  MARK,
  MESSAGE,
  numberIn,
  OWN,
  OWN_KIND,
  SOURCE,
  sourceIn,
} from 'tram-multicast/internal/protocol/layout.js';
import { describeBallot } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { SlotReader } from 'tram-multicast/internal/protocol/leadership/slots.js';
import type { Member } from 'tram-multicast/internal/protocol/member.js';
import { contains } from 'tram-multicast/internal/protocol/overlay.js';
import type { Cell, LogView, QueueView } from './view.js';

/** More are not drawn. */
const QUEUED_MAX = 12;

export class MemoryReader {
  constructor(
    private readonly world: World,
    private readonly narrator: Narrator,
  ) {}

  /** @param decided  what the replica knows to be decided; undefined if only its log tells */
  logOf(member: Member, decided: number | undefined): LogView | undefined {
    const ring = member.log.current();
    if (ring === undefined) return undefined;
    const extent = member.log.extentOf(ring, member.near);
    const decidedBelow = decided ?? decidedIndex(member, ring);
    const cells: Cell[] = [];
    let at = extent.basePosition;
    const entries: number[] = [];
    for (; at !== extent.endPosition; at = (at + word(ring, at)) | 0) entries.push(at);
    const first = extent.endIndex - entries.length;
    entries.forEach((position, i) => {
      const index = first + i;
      const isDelivered = index < member.nextToDeliver;
      const state = isDelivered ? 'delivered' : index < decidedBelow ? 'decided' : 'undecided';
      cells.push({ ...this.entryAt(ring, position), index: this.shown(index), state });
    });
    return { ballot: describeBallot(extent.ballot), truncated: this.shown(first), cells };
  }

  /** Indices are shown from 0 on, wherever the run begins to count. */
  shown(index: number): number {
    return index - this.world.plan.sizes.firstIndex;
  }

  private entryAt(ring: Window, position: number): Pick<Cell, 'id' | 'label' | 'destinations'> {
    const source = position + sourceIn(word(ring, position));
    if (word(ring, source + SOURCE.id) === OWN) {
      const kind = word(ring, source + SOURCE.number);
      return { id: undefined, label: OWN_LABELS.get(kind) ?? 'own', destinations: [] };
    }
    return this.messageAt(ring, position + HEAD_WORDS);
  }

  private messageAt(ring: Window, at: number): Pick<Cell, 'id' | 'label' | 'destinations'> {
    const low = word(ring, at + MESSAGE.destinationsLow);
    const high = word(ring, at + MESSAGE.destinationsHigh);
    const groups = this.world.plan.parents.keys();
    const destinations = [...groups].filter((group) => contains(low, high, group));
    const bytes = word(ring, at + MESSAGE.payloadBytes);
    if ((bytes & CANCEL) !== 0) return { id: undefined, label: 'cancel', destinations };
    if ((bytes & MARK) !== 0) return { id: undefined, label: 'mark', destinations };
    const session = word(ring, at + MESSAGE.session);
    const series = word(ring, at + MESSAGE.series);
    const number = numberIn(series, word(ring, at + MESSAGE.number));
    const sent = this.world.ledger.find(session, entryGroupOf(series), number);
    const label = sent === undefined ? '?' : labelOf(this.narrator.nameOf(sent.id));
    return { id: sent?.id, label, destinations };
  }

  /** By client: the messages that have arrived here, and that this replica has not delivered. */
  inboxesOf(member: Member): QueueView[] {
    const { layout, edges, delivered } = member;
    const { own } = edges.memory;
    const { firstIndex, salt, clients } = layout.sizes;
    return Array.from({ length: clients }, (_, client) => {
      const window = ringAt(own, layout.inboxRing(client), layout.inboxWords, salt);
      const session = own[layout.inboxControl(client) + INBOX_CONTROL.session];
      const isKnown = delivered.session[client] === session;
      let number = isKnown ? delivered.nextNumber[client] : firstIndex;
      let position = isKnown ? delivered.nextPosition[client] : firstIndex | 0;
      const labels: string[] = [];
      while (session !== 0 && labels.length < QUEUED_MAX) {
        const words = framedWords(window, position, session, number, layout.inboxRecordWordsMax);
        if (words === 0) break;
        labels.push(this.messageAt(window, position + HEAD_WORDS).label);
        position = (position + words) | 0;
        number++;
      }
      return { from: `c${client}`, labels };
    });
  }

  /** By member of the parent group: the entries that lie in its feed, and that this replica has not delivered. */
  feedsOf(member: Member): QueueView[] {
    const { layout, edges, group } = member;
    const parent = edges.overlay.parent(group);
    if (parent < 0) return [];
    return Array.from({ length: layout.sizes.replicas }, (_, writer) => ({
      from: `${parent}/${writer}`,
      labels: this.feedFrom(member, parent, writer),
    }));
  }

  private feedFrom(member: Member, parent: number, writer: number): string[] {
    const { layout, edges, delivered } = member;
    const { own } = edges.memory;
    const start = new SlotReader(own, layout.feedStart(writer), FEED_START.words);
    if (!start.poll() || start.body(FEED_START.incarnation) !== member.incarnation) return [];
    const epoch = start.body(FEED_START.epoch);
    const near = start.wide(FEED_START.index);
    const end = own[layout.feedEnd(writer)];
    const salt = layout.logSalt(parent);
    const window = ringAt(own, layout.feedRing(writer), layout.feedWords, salt);
    const labels: string[] = [];
    let position = start.body(FEED_START.position);
    while (distance(end, position) > 0 && labels.length < QUEUED_MAX) {
      const number = numberAt(window, position);
      const words = framedWords(window, position, epoch, number, layout.entryWordsMax);
      if (words === 0) break;
      if (extend(near, number) >= delivered.nextFromParent)
        labels.push(this.messageAt(window, position + HEAD_WORDS).label);
      position = (position + words) | 0;
    }
    return labels;
  }
}

const OWN_LABELS = new Map<number, string>([
  [OWN_KIND.tick, 'tick'],
  [OWN_KIND.sessionEnded, 'end'],
  [OWN_KIND.mark, 'mark'],
]);

/** Without the quotes that texts have in lines. */
export function labelOf(name: string): string {
  return name.startsWith('"') ? (JSON.parse(name) as string) : name;
}
