/** The tree of groups as a picture. The table below it has the same for those who can't see it. */
import { signal } from '@preact/signals';
import type { ShownGroup } from 'tram-multicast/internal/page/wire.js';
import { layOutTree } from '../shared/tree-layout.js';
import { isTroubled, Mark, MarkShape, standingOf } from './standing.js';

const NODE = { width: 58, height: 38, gapX: 10, gapY: 26 };
/** For many groups. */
const SMALL_NODE = { width: 33, height: 32, gapX: 4, gapY: 20 };
const MANY_COLUMNS = 18;
const LINE_MAX = 5;

/** The group that is open in the table. */
export const selected = signal<number | undefined>(undefined);

function select(group: number): void {
  selected.value = group;
  document.getElementById(`group-${group}`)?.scrollIntoView({ block: 'nearest' });
}

/** Does the tree need the whole width of the page? */
export function isBroad(groups: readonly ShownGroup[]): boolean {
  return layOutTree(groups.map(({ parent }) => parent)).columns > MANY_COLUMNS / 2;
}

export function Tree({ groups }: { readonly groups: readonly ShownGroup[] }) {
  const { places, columns, rows } = layOutTree(groups.map(({ parent }) => parent));
  const { width, height, gapX, gapY } = columns > MANY_COLUMNS ? SMALL_NODE : NODE;
  const x = (group: number): number => places[group].column * (width + gapX) + width / 2 + 1;
  const y = (group: number): number => places[group].depth * (height + gapY) + 1;
  const wholeWidth = columns * (width + gapX) - gapX + 2;
  const wholeHeight = rows * (height + gapY) - gapY + 2;
  return (
    <>
      <Legend />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, and so the keyboard must reach it */}
      <section class="tree" aria-label="Tree of groups, as a picture" tabIndex={0}>
        <svg
          width={wholeWidth}
          height={wholeHeight}
          viewBox={`0 0 ${wholeWidth} ${wholeHeight}`}
          aria-hidden="true"
        >
          {groups.map((group) => {
            const { group: id, parent } = group;
            if (parent < 0) return null;
            const [top, bottom] = [y(parent) + height, y(id)];
            const middle = (top + bottom) / 2;
            const path = `M${x(parent)} ${top}C${x(parent)} ${middle} ${x(id)} ${middle} ${x(id)} ${bottom}`;
            return <path key={id} class="branch" d={path} stroke-width={lineWidth(group)} />;
          })}
          {groups.map((group) => (
            <Node
              key={group.group}
              group={group}
              x={x(group.group)}
              y={y(group.group)}
              width={width}
              height={height}
              isSelected={group.group === selected.value}
            />
          ))}
        </svg>
      </section>
    </>
  );
}

function Legend() {
  return (
    <ul class="legend" aria-hidden="true">
      <li>
        <Mark standing="leader" /> leads
      </li>
      <li>
        <Mark standing="follower" /> follows
      </li>
      <li>
        <Mark standing="candidate" /> campaigns
      </li>
      <li>
        <Mark standing="recovering" /> recovers or starts
      </li>
      <li>
        <Mark standing="absent" /> down
      </li>
    </ul>
  );
}

/** The more messages, the wider. */
function lineWidth({ messagesPerSecond, relayedPerSecond }: ShownGroup): number {
  return Math.min(LINE_MAX, 1 + 0.8 * Math.log10(1 + messagesPerSecond + relayedPerSecond));
}

interface NodeProps {
  readonly group: ShownGroup;
  /** The middle of its upper edge. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly isSelected: boolean;
}

function Node({ group, x, y, width, height, isSelected }: NodeProps) {
  const { group: id, leader, replicas } = group;
  const step = Math.min(13, (width - 6) / replicas.length);
  const first = x - (step * (replicas.length - 1)) / 2;
  const name = ['node', isTroubled(group) && 'troubled', isSelected && 'selected'];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons of the table do the same
    <g class={name.filter(Boolean).join(' ')} onClick={() => select(id)}>
      <rect x={x - width / 2} y={y} width={width} height={height} rx={6} />
      <text x={x} y={y + height * 0.42} text-anchor="middle">
        {isTroubled(group) ? `! g${id}` : `g${id}`}
      </text>
      {replicas.map((replica) => (
        <MarkShape
          key={replica.member}
          standing={standingOf(replica, leader)}
          x={first + replica.member * step}
          y={y + height * 0.74}
          size={Math.min(5, step / 2)}
        />
      ))}
    </g>
  );
}
