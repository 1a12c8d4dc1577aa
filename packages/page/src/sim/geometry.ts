/** Where clients, groups and replicas are drawn in the picture, in pixels. */
import type { View } from '../run/view.js';
import { layOutTree } from '../shared/tree-layout.js';

/** Of a group, as far as there is room. */
const GROUP_WIDTH_MIN = 250;
const GROUP_WIDTH_MAX = 420;
export const HEAD_HEIGHT = 28;
export const REPLICA_HEIGHT = 48;
export const CLIENT_WIDTH = 122;
export const CLIENT_HEIGHT = 30;
const COLUMN_GAP = 44;
const ROW_GAP = 48;
const CLIENT_GAP = 12;
const MARGIN = 2;
/** How far the curve of a write within a group goes out of its box. */
const BULGE = 34;

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Geometry {
  readonly width: number;
  readonly height: number;
  /** The upper left corners. */
  readonly groups: readonly Point[];
  readonly clients: readonly Point[];
  readonly groupWidth: number;
  readonly groupHeight: number;
}

/** @param room  how wide it may be */
export function layOut(view: View, room: number): Geometry {
  const { places, columns, rows } = layOutTree(view.parents);
  const share = Math.floor(room / columns) - COLUMN_GAP - 2 * MARGIN;
  const groupWidth = Math.min(GROUP_WIDTH_MAX, Math.max(GROUP_WIDTH_MIN, share));
  const groupHeight = HEAD_HEIGHT + view.replicasPerGroup * REPLICA_HEIGHT + 4;
  const treeWidth = columns * (groupWidth + COLUMN_GAP);
  const clientsWidth = view.clients.length * (CLIENT_WIDTH + CLIENT_GAP) - CLIENT_GAP;
  const width = Math.max(treeWidth, clientsWidth) + 2 * MARGIN;
  const left = MARGIN + (width - 2 * MARGIN - treeWidth) / 2;
  const top = CLIENT_HEIGHT + ROW_GAP;
  return {
    width,
    height: top + rows * (groupHeight + ROW_GAP) - ROW_GAP + 2 * MARGIN,
    groups: places.map(({ column, depth }) => ({
      x: left + column * (groupWidth + COLUMN_GAP),
      y: top + depth * (groupHeight + ROW_GAP),
    })),
    clients: view.clients.map((_, i) => ({
      x: Math.max(MARGIN, (width - BULGE - clientsWidth) / 2) + i * (CLIENT_WIDTH + CLIENT_GAP),
      y: MARGIN,
    })),
    groupWidth,
    groupHeight,
  };
}

/** The line from a parent to its child. */
export function edgePath(
  { groups, groupWidth, groupHeight }: Geometry,
  parent: number,
  child: number,
): string {
  const from = groups[parent];
  const to = groups[child];
  const x = from.x + groupWidth / 2;
  const y = from.y + groupHeight;
  const middle = (y + to.y) / 2;
  const end = to.x + groupWidth / 2;
  return `M${x} ${y}C${x} ${middle} ${end} ${middle} ${end} ${to.y}`;
}

/** The line of an operation from one participant to another. */
export function flightPath(view: View, geometry: Geometry, from: number, to: number): string {
  const one = view.replicas[from];
  const two = view.replicas[to];
  if (one !== undefined && two !== undefined && one.group === two.group) {
    const x = geometry.groups[one.group].x + geometry.groupWidth;
    const y1 = middleOf(geometry, one.group, one.member);
    const y2 = middleOf(geometry, two.group, two.member);
    return `M${x} ${y1}C${x + BULGE} ${y1} ${x + BULGE} ${y2} ${x + 3} ${y2}`;
  }
  const isDown = heightOf(view, geometry, from) < heightOf(view, geometry, to);
  const start = anchor(view, geometry, from, isDown);
  const end = anchor(view, geometry, to, !isDown);
  return `M${start.x} ${start.y}L${end.x} ${end.y}`;
}

function middleOf({ groups }: Geometry, group: number, member: number): number {
  return groups[group].y + HEAD_HEIGHT + (member + 0.5) * REPLICA_HEIGHT;
}

function heightOf(view: View, { groups }: Geometry, participant: number): number {
  const replica = view.replicas[participant];
  return replica === undefined ? 0 : groups[replica.group].y;
}

/** On the upper or lower edge of the box: one place for each member. */
function anchor(view: View, geometry: Geometry, participant: number, isBelow: boolean): Point {
  const replica = view.replicas[participant];
  if (replica === undefined) {
    const { x, y } = geometry.clients[participant - view.replicas.length];
    return { x: x + CLIENT_WIDTH / 2, y: y + CLIENT_HEIGHT };
  }
  const { x, y } = geometry.groups[replica.group];
  const share = (replica.member + 1) / (view.replicasPerGroup + 1);
  return { x: x + share * geometry.groupWidth, y: isBelow ? y + geometry.groupHeight : y };
}
