/**
 * Several rounds of `bench peers`. The figures of a system are the medians of its rounds; a ratio of two systems is the
 * median of the ratios of the rounds.
 */
import { type Spread, spreadOf } from '../load/spread.js';
import type { Figures } from './figures.js';
import type { Advantage, Advantages, RoundsFigures, SystemResult } from './peers.js';

/** A system that failed in one round has failed. */
export function combine(rounds: readonly (readonly SystemResult[])[]): SystemResult[] {
  return rounds[0].map((first, i) => {
    const results = rounds.map((systems) => systems[i]);
    const measured = results.filter((result) => result.status === 'measured');
    if (measured.length < results.length) {
      return results.find(({ status }) => status !== 'measured')!;
    }
    return {
      ...first,
      status: 'measured',
      one: middleFigures(measured.map(({ one }) => one)),
      eight: middleFigures(measured.map(({ eight }) => eight)),
    };
  });
}

/** By the `id` of each peer that was measured in all rounds, if TRAM was too. */
export function advantagesOf(rounds: readonly (readonly SystemResult[])[]): Advantages {
  const [tram, ...peers] = combine(rounds);
  if (tram.id !== 'tram' || tram.status !== 'measured') return {};
  const advantageOver = (peer: number, kind: 'one' | 'eight'): Advantage => {
    const ratios = rounds.map((systems) => ratio(systems[0], systems[peer], kind));
    return {
      throughput: spread(ratios, ({ throughput }) => throughput),
      latencyP50: spread(ratios, ({ latencyP50 }) => latencyP50),
    };
  };
  const entries = peers.flatMap(({ id, status }, i) =>
    status === 'measured'
      ? [[id, { one: advantageOver(i + 1, 'one'), eight: advantageOver(i + 1, 'eight') }] as const]
      : [],
  );
  return Object.fromEntries(entries);
}

function ratio(tram: SystemResult, peer: SystemResult, kind: 'one' | 'eight') {
  if (tram.status !== 'measured' || peer.status !== 'measured') {
    throw new Error('only systems that were measured can be compared');
  }
  const ours = tram[kind];
  const theirs = peer[kind];
  return {
    throughput: ours.messagesPerSecond / theirs.messagesPerSecond,
    latencyP50: theirs.alone.latencyNsP50 / ours.alone.latencyNsP50,
  };
}

/** The round with the median throughput, with the latency of the round that has the median latency. */
function middleFigures(rounds: readonly Figures[]): RoundsFigures {
  const { alone } = middle(rounds, latencyOf);
  return {
    ...middle(rounds, rateOf),
    alone,
    spread: {
      messagesPerSecond: spread(rounds, rateOf),
      latencyNsP50: spread(rounds, latencyOf),
    },
  };
}

export function inOneRound(figures: Figures): RoundsFigures {
  return middleFigures([figures]);
}

function rateOf({ messagesPerSecond }: Figures): number {
  return messagesPerSecond;
}

function latencyOf({ alone }: Figures): number {
  return alone.latencyNsP50;
}

function middle<Item>(items: readonly Item[], by: (item: Item) => number): Item {
  return items.toSorted((a, b) => by(a) - by(b))[items.length >> 1];
}

function spread<Item>(items: readonly Item[], by: (item: Item) => number): Spread {
  return spreadOf(items.map(by))!;
}
