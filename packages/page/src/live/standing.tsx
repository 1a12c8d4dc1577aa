/** What a replica is at the moment, as a word and as a mark. Marks differ in shape, not only in colour. */
import type { ShownGroup, ShownReplica } from 'tram-multicast/internal/page/wire.js';

export type Standing = 'leader' | 'follower' | 'candidate' | 'recovering' | 'starting' | 'absent';

/** A replica that is not up has no role. */
export function standingOf(replica: ShownReplica, leader: number | null): Standing {
  if (replica.state === 'starting') return 'starting';
  if (replica.state !== 'up') return 'absent';
  if (replica.member === leader) return 'leader';
  if (replica.role === 'candidate' || replica.role === 'recovering') return replica.role;
  return 'follower';
}

/** `leads`, `follows`, or the state that keeps it from both. */
export function wordFor(replica: ShownReplica, leader: number | null): string {
  const standing = standingOf(replica, leader);
  if (standing === 'leader') return 'leads';
  if (standing === 'follower') return 'follows';
  if (standing === 'candidate') return 'campaigns';
  return standing === 'absent' ? replica.state : standing;
}

/** Does nobody lead, although somebody should? */
export function isTroubled({ leader, health }: ShownGroup): boolean {
  return leader === null || health !== 'ok';
}

const SIZE = 14;
const MIDDLE = SIZE / 2;

/** For text: a mark of its own size. */
export function Mark({ standing }: { readonly standing: Standing }) {
  return (
    <svg class="mark" width={SIZE} height={SIZE} viewBox={`0 0 ${SIZE} ${SIZE}`} aria-hidden="true">
      <MarkShape standing={standing} x={MIDDLE} y={MIDDLE} size={5} />
    </svg>
  );
}

interface ShapeProps {
  readonly standing: Standing;
  readonly x: number;
  readonly y: number;
  /** Half its width. */
  readonly size: number;
}

/** Within a picture. */
export function MarkShape({ standing, x, y, size }: ShapeProps) {
  const name = `standing ${standing}`;
  switch (standing) {
    case 'leader': {
      const s = size * 1.15;
      return <path class={name} d={`M${x} ${y - s}L${x + s} ${y}L${x} ${y + s}L${x - s} ${y}Z`} />;
    }
    case 'absent': {
      const s = size * 0.75;
      const cross = `M${x - s} ${y - s}L${x + s} ${y + s}M${x - s} ${y + s}L${x + s} ${y - s}`;
      return <path class={name} d={cross} />;
    }
    case 'candidate': {
      const s = size;
      return <path class={name} d={`M${x} ${y - s}L${x + s} ${y + s}L${x - s} ${y + s}Z`} />;
    }
    case 'recovering':
    case 'starting':
      return (
        <circle class={name} cx={x} cy={y} r={size * 0.8} stroke-dasharray={`${size * 0.6}`} />
      );
    case 'follower':
      return <circle class={name} cx={x} cy={y} r={size * 0.7} />;
  }
}
