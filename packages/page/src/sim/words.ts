/** The state of participants in words: in the picture, in tables and for screen readers. */
import type { Cell, ReplicaView } from '../run/view.js';

const PHASES: Readonly<Record<string, string>> = {
  acquireGrants: 'asks for grants',
  recheck: 'checks its grants',
  adopt: 'adopts a log',
  catchUp: 'catches up',
  install: 'installs its log',
};

export function roleText({ state, role, phase, leavesMemory }: ReplicaView): string {
  if (state === 'down') return leavesMemory ? '✕ killed' : '✕ crashed';
  const words = ROLES[role] ?? role;
  const doing = phase === undefined ? words : `${words}: ${PHASES[phase] ?? phase}`;
  return state === 'paused' ? `‖ paused ${role}` : doing;
}

const ROLES: Readonly<Record<string, string>> = {
  leader: '★ leader',
  candidate: '▲ candidate',
  follower: 'follower',
  recovering: '↻ recovering',
};

export function describeCell({ index, label, state, destinations }: Cell): string {
  const groups = destinations.length > 0 ? ` for ${destinations.join(', ')}` : '';
  return `${index}: ${label}${groups}, ${state}`;
}

export function timeText(timeUs: number): string {
  return timeUs < 10_000 ? `${Math.round(timeUs)} µs` : `${(timeUs / 1000).toFixed(2)} ms`;
}
