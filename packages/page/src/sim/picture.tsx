/** The picture: clients, the tree of groups, the log of each replica, and what is on its way between them. */
import { computed, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Cell, ClientView, Flight, ReplicaView, View } from '../run/view.js';
import {
  CLIENT_HEIGHT,
  CLIENT_WIDTH,
  edgePath,
  flightPath,
  type Geometry,
  HEAD_HEIGHT,
  layOut,
  REPLICA_HEIGHT,
} from './geometry.js';
import { client, destinations, player, selected, toggleDestination } from './state.js';
import { marks } from './verdict.js';
import { roleText } from './words.js';

/** Smaller than this, nobody can read it; then one scrolls. */
const SCALE_MIN = 0.62;
/** Of a replica's box, beside its log: borders, and what waits in inboxes. */
const BESIDE_CELLS = 136;
const LETTER_WIDTH = 6.6;
const CELL_PADDING = 13;

const room = signal({ width: 0, height: 0 });

const geometry = computed(() => {
  const view = player.view.value;
  return view && layOut(view, room.value.width);
});

/** Where the page scrolls as a whole, the picture may be as high as it needs. */
const IS_WIDE = matchMedia('(min-width: 60rem)');

/** As wide as there is room; and as high, unless it has to scroll then anyway. */
const scale = computed(() => {
  const { width, height } = room.value;
  if (geometry.value === undefined || width === 0) return 1;
  const across = Math.min(1, Math.max(SCALE_MIN, width / geometry.value.width));
  const down = height / geometry.value.height;
  return IS_WIDE.matches && down > SCALE_MIN ? Math.min(across, down) : across;
});

export function Picture() {
  const view = player.view.value;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => {
      const { width, height } = contentRect;
      room.value = { width, height };
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must take the focus
    <section class="stage" ref={box} aria-label="Picture of the cluster" tabIndex={0}>
      {view && geometry.value && <Drawing view={view} geometry={geometry.value} />}
    </section>
  );
}

function Drawing({ view, geometry }: { view: View; geometry: Geometry }) {
  const { width, height } = geometry;
  const size = pixels({ width: width * scale.value, height: height * scale.value });
  return (
    <div class="drawing-room" style={size}>
      <div
        class="drawing"
        style={{ ...pixels({ width, height }), transform: `scale(${scale.value})` }}
      >
        <Lines view={view} geometry={geometry} />
        {view.clients.map((each, i) => (
          <ClientBox key={each.name} client={each} geometry={geometry} index={i} />
        ))}
        {view.parents.map((_, group) => (
          <GroupBox key={group} group={group} view={view} geometry={geometry} />
        ))}
      </div>
    </div>
  );
}

function Lines({ view, geometry }: { view: View; geometry: Geometry }) {
  const { width, height } = geometry;
  return (
    <svg class="lines" width={width} height={height} aria-hidden="true">
      <defs>
        {KINDS.map((kind) => (
          <marker
            key={kind}
            id={`head-${kind}`}
            class={`head of-${kind}`}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto"
          >
            <path d="M0 0L8 4L0 8z" />
          </marker>
        ))}
      </defs>
      {view.parents.map((parent, group) =>
        parent < 0 ? null : <path key={group} class="edge" d={edgePath(geometry, parent, group)} />,
      )}
      {distinct(view.flights).map(({ from, to, kind, isTorn }) => (
        <path
          key={`${from} ${to} ${kind}`}
          class={`flight of-${kind}${isTorn ? ' torn' : ''}`}
          d={flightPath(view, geometry, from, to)}
          marker-end={`url(#head-${kind})`}
        />
      ))}
    </svg>
  );
}

export const KINDS = ['message', 'log', 'feed', 'reply', 'request', 'grant', 'snapshot'] as const;

/** One line for all operations of a kind on one link. */
function distinct(flights: readonly Flight[]): Flight[] {
  const byName = new Map<string, Flight>();
  for (const flight of flights) {
    const name = `${flight.from} ${flight.to} ${flight.kind}`;
    if (!byName.has(name) || flight.isTorn) byName.set(name, flight);
  }
  return [...byName.values()];
}

function ClientBox(props: { client: ClientView; geometry: Geometry; index: number }) {
  const { geometry, index } = props;
  const { name, session, state, unanswered } = props.client;
  const { x, y } = geometry.clients[index];
  const isChosen = client.value === index;
  const doing = unanswered > 0 ? `${unanswered} open` : state === 'up' ? 'idle' : state;
  // Messages of drawn runs have names, which begin with their sessions.
  const isDrawn = player.link.value.cluster === undefined;
  return (
    <button
      type="button"
      class={`client ${state}${isChosen ? ' chosen' : ''}`}
      style={pixels({ left: x, top: y, width: CLIENT_WIDTH, height: CLIENT_HEIGHT })}
      aria-pressed={isChosen}
      onClick={() => {
        client.value = index;
      }}
    >
      <span class="unseen">Client </span>
      <strong>{name}</strong> {isDrawn && `as ${session}, `}
      {doing}
    </button>
  );
}

function GroupBox(props: { group: number; view: View; geometry: Geometry }) {
  const { group, view, geometry } = props;
  const { x, y } = geometry.groups[group];
  const isDestination = destinations.value.has(group);
  const members = view.replicas.filter((replica) => replica.group === group);
  return (
    <fieldset
      class={`group${isDestination ? ' destination' : ''}`}
      style={pixels({ left: x, top: y, width: geometry.groupWidth, height: geometry.groupHeight })}
    >
      <legend class="unseen">Group {group}</legend>
      <button
        type="button"
        class="group-head"
        style={pixels({ height: HEAD_HEIGHT })}
        aria-pressed={isDestination}
        onClick={() => toggleDestination(group)}
      >
        <span>Group {group}</span>
        <span class="faint">{isDestination ? '● destination' : '○ not a destination'}</span>
      </button>
      {members.map((replica) => (
        <ReplicaBox key={replica.name} replica={replica} width={geometry.groupWidth} />
      ))}
    </fieldset>
  );
}

function ReplicaBox({ replica, width }: { replica: ReplicaView; width: number }) {
  const { name, state, role, promised } = replica;
  const isSelected = selected.value === name;
  return (
    <button
      type="button"
      class={`replica ${state} ${role}${isSelected ? ' selected' : ''}`}
      style={pixels({ height: REPLICA_HEIGHT })}
      aria-pressed={isSelected}
      onClick={() => {
        selected.value = name;
      }}
    >
      <span class="replica-head">
        <span class="unseen">Replica </span>
        <strong>{name}</strong>
        <span class="role">{roleText(replica)}</span>
        <span class="faint">promised {promised}</span>
      </span>
      <Cells replica={replica} width={width - BESIDE_CELLS} />
    </button>
  );
}

function Cells({ replica, width }: { replica: ReplicaView; width: number }) {
  const { log, state, leavesMemory, name } = replica;
  if (state === 'down' && !leavesMemory) return <span class="cells faint">memory lost</span>;
  if (log === undefined) return <span class="cells faint">no log yet</span>;
  const [first, end] = visibleCells(log.cells, width, (cell) => isMarked(name, cell));
  const before = log.truncated + first;
  return (
    <span class="cells">
      {before > 0 && (
        <span class="before">{first === 0 ? `${before} dropped` : `${before} …`}</span>
      )}
      {log.cells.slice(first, end).map((cell) => (
        <span
          key={cell.index}
          class={`cell ${cell.state}${isMarked(name, cell) ? ' witness' : ''}`}
        >
          {shortLabel(cell.label)}
          <span class="unseen"> {cell.state}</span>
        </span>
      ))}
      {end < log.cells.length && <span class="before">… {log.cells.length - end}</span>}
      {log.cells.length === 0 && <span class="faint">empty log</span>}
      <Waiting replica={replica} />
    </span>
  );
}

/** What lies in its inboxes and feeds, and was not delivered. */
function Waiting({ replica: { inboxes, feeds } }: { replica: ReplicaView }) {
  const labels = [...new Set([...inboxes, ...feeds].flatMap((queue) => queue.labels))];
  return labels.length === 0 ? null : (
    <span class="waiting">
      <span class="unseen">waiting: </span>✉ {labels.map(shortLabel).join(' ')}
    </span>
  );
}

function isMarked(replica: string, { id }: Cell): boolean {
  return id !== undefined && marks.value.some((mark) => mark.replica === replica && mark.id === id);
}

/** As many of the last cells as fit; or, if the witness of the judge names one that is earlier, as many up to that one. */
function visibleCells(
  cells: readonly Cell[],
  width: number,
  isNamed: (cell: Cell) => boolean,
): readonly [first: number, end: number] {
  const named = cells.findLastIndex(isNamed);
  const end = named < 0 ? cells.length : Math.min(cells.length, named + 2);
  let room = width;
  let first = end;
  while (first > 0) {
    room -= shortLabel(cells[first - 1].label).length * LETTER_WIDTH + CELL_PADDING;
    if (room < 0) break;
    first--;
  }
  return [first, end];
}

/** `c1:0.17` of the history is `1:0.17` in a cell. */
function shortLabel(label: string): string {
  return label.replace(/^c(?=\d+:)/, '');
}

function pixels<Key extends string>(lengths: Record<Key, number>): Record<Key, string> {
  const entries = Object.entries<number>(lengths).map(([key, value]) => [key, `${value}px`]);
  return Object.fromEntries(entries) as Record<Key, string>;
}
