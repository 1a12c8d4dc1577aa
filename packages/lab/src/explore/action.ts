/**
 * The actions of the explorer, and how scripts write them:
 *
 *   B      B takes a step. (Only if steps are free: see `scope.ts`.)
 *   B>A    the first operation from B to A lands
 *   B/A    it is refused, and its bytes are stopped
 *   B!A    the link from B to A breaks: all operations in flight are lost
 *   pB     B pauses: it takes no steps until it goes on
 *   gB     B goes on
 *   aD     the message of D, a client that has gone, arrives
 *   cB     B campaigns
 *   tB     time passes for B: it sends a heartbeat, reads rows, asks again, resends
 *   rB     B is killed, and resumes with the memory that it left. What it has in flight is lost
 *   oB     B stops in an orderly way, and resumes with its memory and the snapshot that it left
 *   kB3    B takes a step, and is killed in it at its fourth post or change of permission
 *   fB     B loses its memory and restarts. What it has in flight is lost
 *   nD     the client D crashes; a new session takes its slot and sends a message
 */

export type Kind =
  | 'step'
  | 'land'
  | 'stop'
  | 'break'
  | 'arrive'
  | 'pause'
  | 'continue'
  | 'campaign'
  | 'beat'
  | 'resume'
  | 'leave'
  | 'die'
  | 'restart'
  | 'session';

export interface Action {
  readonly kind: Kind;
  readonly participant: number;
  /** Of a link, where it leads to; of a death, after how many posts; else 0. */
  readonly more: number;
}

const PREFIXES: Readonly<Record<string, Kind>> = {
  a: 'arrive',
  p: 'pause',
  g: 'continue',
  c: 'campaign',
  t: 'beat',
  r: 'resume',
  o: 'leave',
  k: 'die',
  f: 'restart',
  n: 'session',
};
const BETWEEN: Readonly<Record<string, Kind>> = { '>': 'land', '/': 'stop', '!': 'break' };

export function letterOf(participant: number): string {
  return String.fromCharCode(65 + participant);
}

export function participantOf(letter: string): number {
  return letter.charCodeAt(0) - 65;
}

export function format({ kind, participant, more }: Action): string {
  const letter = letterOf(participant);
  if (kind === 'step') return letter;
  for (const [sign, of] of Object.entries(BETWEEN)) {
    if (of === kind) return `${letter}${sign}${letterOf(more)}`;
  }
  const [prefix] = Object.entries(PREFIXES).find(([, of]) => of === kind)!;
  return `${prefix}${letter}${kind === 'die' ? more : ''}`;
}

/** A script can't be read, or does not fit the scope. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}

export function parse(word: string): Action {
  const [, prefix, letter, sign, other, count] =
    /^([a-z])?([A-Z])(?:([>/!])([A-Z])|(\d+))?$/.exec(word) ?? [];
  const kind = prefix ? PREFIXES[prefix] : sign ? BETWEEN[sign] : 'step';
  const isWhole = letter !== undefined && kind !== undefined && !(prefix && sign);
  if (!isWhole || (count !== undefined) !== (kind === 'die')) {
    throw new ScriptError(`"${word}" is no action`);
  }
  const more = sign ? participantOf(other) : Number(count ?? 0);
  return { kind, participant: participantOf(letter), more };
}

export function parseScript(text: string): Action[] {
  return text.split(/\s+/).filter(Boolean).map(parse);
}

export function formatScript(actions: readonly Action[]): string {
  return actions.map(format).join(' ');
}

export function isSame(a: Action, b: Action): boolean {
  return a.kind === b.kind && a.participant === b.participant && a.more === b.more;
}

const KINDS: readonly Kind[] = [
  'step',
  'land',
  'stop',
  'break',
  'arrive',
  'pause',
  'continue',
  'campaign',
  'beat',
  'resume',
  'leave',
  'die',
  'restart',
  'session',
];

/** A number for the action. */
export function codeOf({ kind, participant, more }: Action): number {
  return (KINDS.indexOf(kind) * 32 + participant) * 1024 + more;
}
