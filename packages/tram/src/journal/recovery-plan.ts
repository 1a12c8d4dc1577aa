/**
 * The third step of a recovery (recovery.ts): given what the journals have, which era is used, and what each group begins the
 * next one with. Groups are planned from the root down:
 *
 *   root    ├── longest journal ──────────────┤
 *   child   ├── longest journal, below the cut ──┤ appended ─┤
 *                                               ▲
 *            the first entry that its parent no longer has
 *
 * A child *keeps* its longest journal up to the first entry that has come from beyond the parent's kept end. Then it gets
 * everything of the parent's that goes to it and that it lacks, in the parent's order: the parent's kept entries first, then
 * those that were appended to the parent, whose indices continue after the kept ones. Everything that the child had from
 * beyond the parent's kept end is cut, so nothing is appended that it has already.
 *
 * What a parent's snapshot has replaced, its children have: it counted only once all its entries were durable in them
 * (they are *stable*), or once a mark was *complete* that it was taken at, or before. A child's snapshot that counts is never
 * beyond the cut, for the same reasons.
 *
 * A journal may also have snapshots at marks that do not count yet. States right after the same mark fit together, in all
 * groups: an entry that a parent sends to a child lies before the mark in one of them if it does in the other. So these may
 * be used as well, up to the last mark k* that every group can reach that way. Every complete mark can be reached, whichever
 * f+1 journals of each group are there; so k* is not below it. With that:
 *   - A child that starts at a mark up to k* has nothing from beyond it, and the parent's kept end is beyond it.
 *   - What the parent has replaced by a snapshot at a mark up to k*, the child has, since it reaches k* as well.
 *
 * Where journals are missing, this need not hold. Each thing that may be lost then is named, and the plan is the best that
 * can be had: groups without a journal begin without state, and a snapshot beyond the cut is kept. Whether such a plan is
 * carried out is for recovery.ts to decide. A child that lacks what its parent's snapshot has replaced is named: either its own
 * journals are missing; or it reaches k*, and then only by one that is not used, because it lies beyond the parent's end.
 */
import { MESSAGE, PARENT, SOURCE } from '../protocol/layout.js';
import { WIDE } from '../protocol/wide.js';
import { askOne, type Recovering } from './asking.js';
import {
  type CutAsk,
  type GroupPlan,
  NO_ERA,
  type Survey,
  type SurveyedSequence,
} from './recovery-asks.js';
import { type ClusterShape, membersOn, quorumOf } from './shape.js';

/** @internal */
export interface PlannedEra {
  readonly groups: readonly GroupPlan[];
  /** No journal has anything: the cluster starts for the first time. */
  readonly isFirst: boolean;
  /** One line for each thing that may be lost. */
  readonly losses: readonly string[];
}

type Surveys = ReadonlyMap<number, Survey>;

/** A sequence that one host has of a group. */
interface Candidate extends SurveyedSequence {
  readonly host: number;
}

/** A group that is planned: what its children must know of it. */
interface Planned extends GroupPlan {
  /** It, or a group above it, may lack messages that its children have. */
  readonly isLossy: boolean;
}

/** @internal */
export function* planEra(shape: ClusterShape, surveys: Surveys): Recovering<PlannedEra> {
  const { overlay } = shape;
  if (isNew(shape, surveys)) {
    const groups = overlay.parents.map((_, group) => emptyPlan(shape, group, false));
    return { groups, isFirst: true, losses: [] };
  }
  const losses = missingJournals(shape, surveys);
  const era = chooseEra(shape, surveys);
  const isShort = overlay.parents.map(
    (_, group) =>
      membersOn(shape, group, (host) => hasJournal(surveys, host, group)) < quorumOf(shape),
  );
  const found = overlay.parents.map((_, group) => candidatesOf(surveys, era, group));
  const candidates = fitting(found, isShort);
  const planned: Planned[] = [];
  for (const group of topDown(shape)) {
    const parent = planned[overlay.parent(group)] as Planned | undefined;
    planned[group] = yield* planGroup(
      shape,
      candidates[group],
      isShort[group],
      group,
      parent,
      losses,
    );
  }
  const groups = planned.map(({ isLossy, ...plan }) => plan);
  return { groups, isFirst: false, losses };
}

/**
 * Has no era ever been opened? All hosts must tell: a first era is open only once all of them have marked it. An attempt to
 * start for the first time may have left opening snapshots, without state.
 */
function isNew({ hosts }: ClusterShape, surveys: Surveys): boolean {
  if (surveys.size < hosts) return false;
  return [...surveys.values()].every(
    ({ hasOpened, sequences }) =>
      !hasOpened &&
      sequences.every(({ isFirst, snapshotIndex, end }) => isFirst && end === snapshotIndex),
  );
}

function missingJournals(shape: ClusterShape, surveys: Surveys): string[] {
  const losses: string[] = [];
  const needed = quorumOf(shape);
  for (let group = 0; group < shape.overlay.groups; group++) {
    const has = (host: number): boolean => hasJournal(surveys, host, group);
    const journals = membersOn(shape, group, has);
    if (journals >= needed) continue;
    const missing = [...new Set(shape.hostsOf(group))].filter((host) => !has(host));
    const why = missing.map((host) => {
      return `${shape.nameOf(host)} ${surveys.has(host) ? 'has none of it' : "can't be reached"}`;
    });
    const lost =
      journals === 0
        ? 'all its state is lost, and it begins without any'
        : 'messages that only the missing journals have are lost';
    losses.push(
      `g${group}: the journals of ${journals} of its ${shape.replicas} members are there, and it needs ${needed}; ${why.join(', ')}: ${lost}`,
    );
  }
  return losses;
}

/**
 * The highest era that every group has. If there is none, journals are missing: then one that was opened, rather than one that
 * more groups have, rather than a higher one.
 */
function chooseEra({ overlay }: ClusterShape, surveys: Surveys): number {
  const groupsIn = new Map<number, Set<number>>();
  const opened = new Set<number>();
  for (const { sequences } of surveys.values()) {
    for (const { era, group, isOpened } of sequences) {
      if (!groupsIn.has(era)) groupsIn.set(era, new Set());
      groupsIn.get(era)!.add(group);
      if (isOpened) opened.add(era);
    }
  }
  const eras = [...groupsIn.keys()].sort((one, other) => other - one);
  const groupsOf = (era: number): number => groupsIn.get(era)!.size;
  const complete = eras.find((era) => groupsOf(era) === overlay.groups);
  if (complete !== undefined) return complete;
  const rank = (era: number): number => (opened.has(era) ? overlay.groups : 0) + groupsOf(era);
  return eras.reduce((best, era) => (rank(era) > rank(best) ? era : best), eras[0] ?? NO_ERA);
}

/** All groups, parents first. */
function topDown({ overlay }: ClusterShape): number[] {
  const order = [overlay.root];
  for (const group of order) order.push(...overlay.children(group));
  return order;
}

function emptyPlan({ firstIndex }: ClusterShape, group: number, isLossy: boolean): Planned {
  return {
    group,
    fromEra: NO_ERA,
    source: -1,
    keepFrom: firstIndex,
    keepBelow: firstIndex,
    append: [],
    isLossy,
  };
}

/** @param isShort  fewer than f+1 journals of the group are there */
function* planGroup(
  shape: ClusterShape,
  candidates: readonly Candidate[],
  isShort: boolean,
  group: number,
  parent: Planned | undefined,
  losses: string[],
): Recovering<Planned> {
  if (candidates.length === 0) {
    const empty = emptyPlan(shape, group, true);
    if (parent === undefined) return empty;
    return { ...empty, append: yield* lackedOf(shape, parent, group, shape.firstIndex) };
  }
  if (parent === undefined) return keep(longest(candidates), isShort);
  // A parent without any journal says nothing of what its children may keep.
  const parentEnd = parent.fromEra === NO_ERA ? Number.MAX_SAFE_INTEGER : parent.keepBelow;
  const usable = candidates.filter(({ snapshotFromParent }) => snapshotFromParent <= parentEnd);
  if (parent.fromEra === NO_ERA || usable.length === 0) {
    losses.push(
      `g${group}: its state has effects of messages that its parent g${parent.group} has lost; they are kept`,
    );
  } else {
    // It may have been the only one that has something durable, or that its parent has replaced.
    const beyond = candidates.find((one) => !usable.includes(one));
    if (beyond !== undefined) {
      losses.push(
        `g${group}: the journal of ${shape.nameOf(beyond.host)} has effects of messages that its parent g${parent.group} has lost; it is not used`,
      );
    }
  }
  const source =
    usable.length > 0
      ? longest(usable)
      : candidates.reduce((oldest, other) =>
          other.snapshotIndex < oldest.snapshotIndex ? other : oldest,
        );
  const { end, nextFromParent } =
    usable.length > 0
      ? yield* askOne(shape, cutAsk(source, parentEnd))
      : { end: source.snapshotIndex, nextFromParent: source.snapshotFromParent };
  if (parent.isLossy && end < source.end) {
    losses.push(
      `g${group}: its last ${source.end - end} entries are dropped: they follow messages that its parent g${parent.group} has lost`,
    );
  }
  const append = yield* lackedOf(shape, parent, group, nextFromParent);
  return { ...keep(source, isShort || parent.isLossy), keepBelow: end, append };
}

function candidatesOf(surveys: Surveys, era: number, group: number): Candidate[] {
  return [...surveys].flatMap(([host, { sequences }]) =>
    sequences
      .filter((sequence) => sequence.era === era && sequence.group === group)
      .map((sequence) => ({ ...sequence, host })),
  );
}

/**
 * Of the candidates of each group, those that fit together: all whose snapshots count, and those that start at a mark k* or an
 * earlier one. k* is the last mark that some of these reach, in every group. Dropping a candidate may leave a group with less,
 * so k* is lowered until all groups reach it. Groups whose journals are missing lose something in any case: they do not take
 * anything from the others, as long as there are others.
 */
function fitting(
  candidates: readonly (readonly Candidate[])[],
  isShort: readonly boolean[],
): readonly (readonly Candidate[])[] {
  const whole = candidates.filter((_, group) => !isShort[group]);
  const having = (whole.length > 0 ? whole : candidates).filter(({ length }) => length > 0);
  for (let lowest = Number.MAX_SAFE_INTEGER; ; ) {
    const startsBy = ({ mark }: Candidate): boolean => mark <= lowest;
    const reached = having.map((group) =>
      Math.max(...group.filter(startsBy).map(({ lastMark }) => lastMark)),
    );
    const common = Math.min(lowest, ...reached);
    if (common === lowest) return candidates.map((group) => group.filter(startsBy));
    lowest = common;
  }
}

/** In any era. */
function hasJournal(surveys: Surveys, host: number, group: number): boolean {
  return surveys.get(host)?.sequences.some((sequence) => sequence.group === group) ?? false;
}

function longest(candidates: readonly Candidate[]): Candidate {
  return candidates.reduce((best, other) => (other.end > best.end ? other : best));
}

function keep(
  { group, era: fromEra, host: source, snapshotIndex: keepFrom, end: keepBelow }: Candidate,
  isLossy: boolean,
): Planned {
  return { group, fromEra, source, keepFrom, keepBelow, append: [], isLossy };
}

function cutAsk({ host, group, era, snapshotIndex }: Candidate, parentEnd: number): CutAsk {
  return { what: 'cut', host, group, era, snapshotIndex, parentEnd };
}

/** Bodies of the parent's entries that go to this child, from this index of the parent's on, as the child has them. */
function* lackedOf(
  shape: ClusterShape,
  parent: Planned,
  child: number,
  nextFromParent: number,
): Recovering<Int32Array[]> {
  const { overlay } = shape;
  const { group, fromEra: era, source: host, keepFrom: snapshotIndex, keepBelow: below } = parent;
  const reach = { low: overlay.reachLow[child], high: overlay.reachHigh[child] };
  const lacked: Int32Array[] = [];
  for (let from = Math.max(nextFromParent, parent.keepFrom); from < below; ) {
    const ask = { what: 'entries', host, group, era, snapshotIndex, from, below, reach } as const;
    const { entries, next } = yield* askOne(shape, ask);
    for (const { index, body } of entries) lacked.push(fromParent(body, index));
    from = next;
  }
  for (const [i, body] of parent.append.entries()) {
    const index = below + i;
    if (index < nextFromParent || !overlay.reaches(child, ...destinationsOf(body))) continue;
    lacked.push(fromParent(body, index));
  }
  return lacked;
}

function destinationsOf(body: Int32Array): [low: number, high: number] {
  return [body[MESSAGE.destinationsLow], body[MESSAGE.destinationsHigh]];
}

/** The body of a parent's entry, as its child has it: the same message, from the parent's entry `index`. */
function fromParent(body: Int32Array, index: number): Int32Array {
  const own = body.slice();
  const source = own.length - SOURCE.words;
  own[source + SOURCE.id] = PARENT;
  own[source + SOURCE.number] = index | 0;
  own[source + SOURCE.nextPosition] = Math.floor(index / WIDE);
  return own;
}
