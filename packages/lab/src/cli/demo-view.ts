/**
 * What `tram-lab demo` shows while it runs. On a terminal: the tree, redrawn in place, with the latest events below it.
 * Elsewhere: the events, and a line of figures every second.
 */

import { type Color, count, paint } from 'tram-multicast/internal/cli/colors.js';
import { treeOf } from 'tram-multicast/internal/cli/status-view.js';
import type {
  ClusterStatus,
  GroupStatus,
  ReplicaStatus,
} from 'tram-multicast/internal/hosting/status.js';

export interface DemoView {
  /** Shows an event. */
  tell(news: string): void;
  draw(status: ClusterStatus): void;
  /** Stops drawing. */
  end(): void;
}

/** @param clock  seconds since the load began */
export function demoView(clock: () => number): DemoView {
  const { isTTY, rows, columns } = process.stdout;
  const fits = isTTY && rows > SCREEN_LINES && columns > SCREEN_COLUMNS;
  return fits ? new Screen(clock) : new Lines(clock);
}

const NEWS_LINES = 6;
/** The eight groups, the news, a heading and a few empty lines. */
const SCREEN_LINES = 8 + NEWS_LINES + 4;
const BAR_COLUMNS = 15;
const SCREEN_COLUMNS = 79;
const LINE_EVERY_S = 1;
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';

export function stamp(seconds: number): string {
  return paint('dim', `${seconds.toFixed(1).padStart(5)} s`);
}

/** The messages per second that each group has delivered since the last update. */
class Rates {
  private beforeS: number | undefined;
  private before: number[] = [];
  private rates: number[] = [];

  update(status: ClusterStatus, nowS: number): readonly number[] {
    const delivered = status.groups.map(deliveredBy);
    const { beforeS, before } = this;
    if (beforeS !== undefined) {
      this.rates = delivered.map((messages, group) => {
        const perSecond = (messages - before[group]) / (nowS - beforeS);
        return smooth(this.rates[group], Math.max(0, perSecond));
      });
    }
    this.before = delivered;
    this.beforeS = nowS;
    return this.rates;
  }
}

/** Smooths a rate so that it can be read. */
function smooth(before: number | undefined, now: number): number {
  return before === undefined ? now : before + (now - before) * 0.3;
}

/** A group has delivered what the fastest of its replicas has. */
export function deliveredBy({ replicas }: GroupStatus): number {
  return Math.max(...replicas.map(({ messages }) => messages));
}

class Screen implements DemoView {
  private readonly rates = new Rates();
  private readonly news: string[] = [];
  private linesDrawn = 0;
  private readonly showCursor = (): void => void process.stdout.write(SHOW_CURSOR);

  constructor(private readonly clock: () => number) {
    process.stdout.write(HIDE_CURSOR);
    process.on('exit', this.showCursor);
  }

  tell(news: string): void {
    this.news.push(`${stamp(this.clock())}  ${news}`);
  }

  draw(status: ClusterStatus): void {
    const rates = this.rates.update(status, this.clock());
    const lines = [
      ...treeLines(status, rates),
      '',
      ...Array.from({ length: NEWS_LINES }, (_, i) => this.news.at(i - NEWS_LINES) ?? ''),
    ];
    const back = this.linesDrawn > 0 ? `\u001b[${this.linesDrawn}F` : '';
    process.stdout.write(back + lines.map((line) => `${line}\u001b[K\n`).join(''));
    this.linesDrawn = lines.length;
  }

  end(): void {
    process.off('exit', this.showCursor);
    this.showCursor();
  }
}

function treeLines({ groups, hosts }: ClusterStatus, rates: readonly number[]): string[] {
  const tree = treeOf(groups.map(({ parent }) => parent));
  const width = Math.max(...tree.map(({ label }) => label.length)) + 3;
  const most = Math.max(1, ...rates);
  const hostNames = hosts.map(({ host }) => `host ${host}`).join('  ');
  const heading = `${'group'.padEnd(width)}${hostNames}   delivered  per second`;
  const lines = tree.map(({ group, label }) => {
    const status = groups[group];
    const byHost = status.replicas.toSorted((one, other) => one.host - other.host);
    const cells = byHost.map((replica) => cell(replica, status.leader)).join('  ');
    const rate = rates[group] ?? 0;
    const bar = paint('cyan', '▇'.repeat(Math.round((rate / most) * BAR_COLUMNS)));
    return `${label.padEnd(width)}${cells}  ${number(deliveredBy(status), 10)}  ${number(rate, 10)}  ${bar}`;
  });
  return [paint('dim', heading), ...lines];
}

/** Six columns. */
function cell({ state, role, member }: ReplicaStatus, leader: number | undefined): string {
  const [text, color]: [string, Color] =
    state !== 'up'
      ? ['✕ down', 'red']
      : role === 'recovering'
        ? ['… back', 'yellow']
        : member === leader
          ? ['● lead', 'green']
          : ['○     ', 'dim'];
  return paint(color, text);
}

function number(value: number, width: number): string {
  return Math.round(value).toLocaleString('en-US').padStart(width);
}

class Lines implements DemoView {
  private readonly rates = new Rates();
  private nextS = LINE_EVERY_S;

  constructor(private readonly clock: () => number) {}

  tell(news: string): void {
    process.stdout.write(`${stamp(this.clock())}  ${news}\n`);
  }

  draw(status: ClusterStatus): void {
    const nowS = this.clock();
    const rates = this.rates.update(status, nowS);
    if (nowS < this.nextS) return;
    this.nextS += LINE_EVERY_S;
    const leaders = status.groups.map(({ group, leader }) => `g${group}/${leader ?? '-'}`);
    const perSecond = rates.reduce((sum, rate) => sum + rate, 0);
    const answered = `${count(status.answered, 'message')} answered`;
    this.tell(`${answered}, ${number(perSecond, 0)} deliveries/s, leaders ${leaders.join(' ')}`);
  }

  end(): void {}
}
