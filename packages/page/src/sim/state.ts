/** What the user has chosen on the page, and what its buttons and keys do. */
import { computed, effect, signal } from '@preact/signals';
import { LinkError, parseLink, type RunLink } from 'tram-lab/dist/sim/link.js';
import type { ReplicaView } from '../run/view.js';
import { findHole, type Hole, type HoleRun, isKnown } from './holes.js';
import { Player } from './player.js';
import { findTour, type Move, type Tour } from './tours.js';

export const player = new Player();

/** The replica that is inspected, and that faults hit. */
export const selected = signal('0/0');
/** The other end of links that are cut or slowed down, as it was chosen last. */
export const other = signal('0/1');
export const destinations = signal<ReadonlySet<number>>(new Set([0]));
export const client = signal(0);
export const isPlaying = signal(false);
export const stepsPerSecond = signal(4);
export const showsTable = signal(false);
export const hole = signal<Hole | undefined>(undefined);
export const tour = signal<{ readonly tour: Tour; readonly stop: number } | undefined>(undefined);
/** Is the tour on its way to a stop? */
export const isTravelling = signal(false);
/** What is said to screen readers. */
export const announcement = signal('');

export type Dialog = 'tours' | 'holes' | 'setup' | 'link' | 'keys';
export const dialog = signal<Dialog | undefined>(undefined);

export const selectedReplica = computed((): ReplicaView | undefined =>
  player.view.value?.replicas.find(({ name }) => name === selected.value),
);

/** The moment at which the user has asked the judge, as its link. */
export const askedAt = signal('');

export function askJudge(): void {
  askedAt.value = player.fragment.value;
}

/** All that the selected replica has links to. */
const otherEnds = computed(() => {
  const { replicas, clients } = player.view.value ?? { replicas: [], clients: [] };
  const names = [...replicas, ...clients].map(({ name }) => name);
  return names.filter((name) => name !== selected.value);
});

export const otherEnd = computed(() =>
  otherEnds.value.includes(other.value) ? other.value : otherEnds.value[0],
);

// --- runs ---------------------------------------------------------------------------------------

const OWN_CLUSTER = 'tree=-1,0,0 groups=3 replicas=3 clients=2';

function ownRun(cluster: string): RunLink {
  return { seed: 1, cluster, options: {}, deeds: [], events: 0 };
}

/** Begin with a cluster of the user's own, where each group has a leader. */
export async function openCluster(cluster: string, seed = 1): Promise<boolean> {
  leaveGuides();
  if (!(await player.open({ ...ownRun(cluster), seed }))) return false;
  selectFirst();
  await player.untilLed();
  return true;
}

/** Begin with a drawn run. */
export async function openSeed(seed: number): Promise<boolean> {
  leaveGuides();
  selectFirst();
  return player.open({ seed, options: {}, deeds: [], events: 0 });
}

/** Begin with a run that shows a hole, with the hole or without. */
export async function openHole(found: Hole, run: HoleRun, isOpen = true): Promise<void> {
  leaveGuides();
  hole.value = found;
  selectFirst();
  const { seed, options, mutation } = run;
  await player.open({
    seed,
    options,
    mutation: isOpen ? mutation : undefined,
    deeds: [],
    events: 0,
  });
}

/** Begin with what the fragment of the address says. */
export async function openFragment(text: string): Promise<void> {
  leaveGuides();
  const [, tourName, stop = '1'] = /^tour=([\w-]+)(?:&stop=(\d+))?$/.exec(text) ?? [];
  if (tourName !== undefined && findTour(tourName) !== undefined) {
    await openTour(tourName, Number(stop));
    return;
  }
  if (text === '') {
    await openCluster(OWN_CLUSTER);
    return;
  }
  try {
    const link = parseLink(text);
    if (!isKnown(link.mutation)) throw new LinkError(`there is no hole ${link.mutation}`);
    hole.value = findHole(link.mutation);
    selectFirst();
    await player.open(link);
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    await openCluster(OWN_CLUSTER);
    player.complaint.value = `The link is no run: ${error.message}.`;
  }
}

function leaveGuides(): void {
  isPlaying.value = false;
  hole.value = undefined;
  tour.value = undefined;
}

function selectFirst(): void {
  selected.value = '0/0';
  other.value = '0/1';
  client.value = 0;
  destinations.value = new Set([0]);
}

// --- tours --------------------------------------------------------------------------------------

/** What the run was at the last stop, as its link. */
const arrivedAt = signal('');

/** What the address has after its #: the stop of a tour, as long as the user has not left it, or the run. */
export const address = computed(() => {
  const text = player.fragment.value;
  const at = tour.value;
  const isAtStop = at !== undefined && !isTravelling.value && text === arrivedAt.value;
  return isAtStop ? `tour=${at.tour.name}&stop=${at.stop + 1}` : text;
});

/** @param stop  counted from 1 */
export async function openTour(name: string, stop = 1): Promise<void> {
  const found = findTour(name);
  if (found === undefined) return;
  leaveGuides();
  if (!(await player.open(ownRun(found.cluster)))) return;
  selectFirst();
  await travelTo(found, 0, Math.max(1, Math.min(stop, found.stops.length)) - 1);
}

/** Go on to the next stop of the tour. */
export async function nextStop(): Promise<void> {
  const at = tour.value;
  if (at === undefined || isTravelling.value || at.stop + 1 >= at.tour.stops.length) return;
  await travelTo(at.tour, at.stop + 1, at.stop + 1);
}

/** Go back to the stop before this one: from the beginning, since the run is deterministic. */
export async function previousStop(): Promise<void> {
  const at = tour.value;
  if (at === undefined || isTravelling.value || at.stop === 0) return;
  if (await player.open(ownRun(at.tour.cluster))) await travelTo(at.tour, 0, at.stop - 1);
}

/** Go to a stop of a tour, unless the user does something else meanwhile. @param from  the first stop whose moves are to be done */
async function travelTo(travelled: Tour, from: number, stop: number): Promise<void> {
  const { stops } = travelled;
  const moves = stops.slice(from, stop + 1).flatMap((each) => each.moves ?? []);
  isTravelling.value = true;
  tour.value = { tour: travelled, stop };
  if (from === 0) await player.untilLed();
  for (const move of moves) if (!(await travel(move))) break;
  const { look } = stops[stop];
  if (look !== undefined) selected.value = look;
  arrivedAt.value = player.fragment.value;
  isTravelling.value = false;
}

/** Returns false if it was not possible, or if the user has done something else. */
async function travel(move: Move): Promise<boolean> {
  if ('act' in move) {
    move.act.forEach(showDestinations);
    return player.act(...move.act);
  }
  if ('until' in move) return player.until(move.until);
  if ('untilQuiet' in move) return player.untilQuiet();
  if ('judge' in move) askJudge();
  else for (let i = 0; i < move.steps; i++) if (!(await player.step())) return false;
  return true;
}

/** The picture shows whom a tour lets multicast, and to which groups. */
function showDestinations(command: string): void {
  const [, slot, groups] = /^multicast c(\d+) to ([\d,]+)/.exec(command) ?? [];
  if (slot === undefined) return;
  client.value = Number(slot);
  destinations.value = new Set(groups.split(',').map(Number));
}

// --- deeds --------------------------------------------------------------------------------------

/** A, b, …, z, a1, …: the next text that no message of this run has. */
function nextText(): string {
  const { deeds, events } = player.link.value;
  const sent = deeds.filter(
    ({ command, afterEvents }) => command.startsWith('multicast') && afterEvents <= events,
  ).length;
  const round = Math.floor(sent / 26);
  return String.fromCharCode(97 + (sent % 26)) + (round > 0 ? round : '');
}

export function send(): void {
  const groups = [...destinations.value].sort((a, b) => a - b);
  if (groups.length === 0) player.complaint.value = 'Choose a destination first.';
  else player.act(`multicast c${client.value} to ${groups.join(',')} "${nextText()}"`);
}

export function toggleDestination(group: number): void {
  const { parents } = player.view.value ?? { parents: [] };
  if (group >= parents.length) return;
  const next = new Set(destinations.value);
  if (!next.delete(group)) next.add(group);
  destinations.value = next;
}

export type ReplicaDeed = 'crash' | 'kill' | 'pause' | 'resume' | 'restart' | 'campaign';

export function strike(deed: ReplicaDeed): void {
  player.act(`${deed} ${selected.value}`);
}

/** The selected replica and the next member of its group campaign at the same time. */
export function rivals(): void {
  const replica = selectedReplica.value;
  const view = player.view.value;
  if (replica === undefined || view === undefined) return;
  const next = (replica.member + 1) % view.replicasPerGroup;
  player.act(`campaign ${replica.name}`, `campaign ${replica.group}/${next}`);
}

export type LinkDeed = 'cut' | 'slow' | 'mend';

/** Both directions of the link between the selected replica and the other end. */
export function onLink(deed: LinkDeed): void {
  const [a, b] = [selected.value, otherEnd.value];
  const suffix = deed === 'slow' ? ' by 200us' : '';
  player.act(`${deed} ${a} -> ${b}${suffix}`, `${deed} ${b} -> ${a}${suffix}`);
}

/** From now on all writes are torn, or none is. */
export function toggleTearing(): void {
  const { tornPercent } = player.view.value ?? { tornPercent: 0 };
  player.act(`weather torn=${tornPercent > 0 ? 0 : 100}`);
}

export function selectNext(by: number): void {
  const replicas = player.view.value?.replicas ?? [];
  const at = replicas.findIndex(({ name }) => name === selected.value);
  const next = replicas[(at + by + replicas.length) % replicas.length];
  if (next !== undefined) selected.value = next.name;
}

export function nextOther(): void {
  const at = otherEnds.value.indexOf(otherEnd.value);
  other.value = otherEnds.value[(at + 1) % otherEnds.value.length];
}

export function nextClient(): void {
  const count = player.view.value?.clients.length ?? 1;
  client.value = (client.value + 1) % count;
}

// --- time ---------------------------------------------------------------------------------------

/** Steps per second. */
export const PACES = [1, 2, 4, 10, 30];

export function changePace(by: number): void {
  const at = PACES.indexOf(stepsPerSecond.value) + by;
  stepsPerSecond.value = PACES[Math.max(0, Math.min(PACES.length - 1, at))];
}

export function togglePlaying(): void {
  isPlaying.value = !isPlaying.value;
}

/** Any other way through time ends playing. */
export function stopAnd(act: () => unknown): void {
  isPlaying.value = false;
  act();
}

effect(() => {
  if (!isPlaying.value) return undefined;
  let isBusy = false;
  const timer = setInterval(async () => {
    if (isBusy) return;
    isBusy = true;
    await player.step();
    isBusy = false;
    if (player.isOver.value) isPlaying.value = false;
  }, 1000 / stepsPerSecond.value);
  return () => clearInterval(timer);
});

effect(() => {
  const last = player.story.value.at(-1);
  if (last !== undefined && !isPlaying.value) announcement.value = last.text;
});
