/**
 * Statistics of each participant, as words in the arena. Only the participant writes them; any tool can read them
 * while the cluster runs.
 */
import type { ArenaMap } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import type { Role } from '../protocol/replica.js';
import { Histogram } from './histogram.js';

/** In the order of their numbers in `STATISTIC.role`. */
export const ROLES: readonly Role[] = ['recovering', 'follower', 'candidate', 'leader'];

/** Before the histogram. Counts are modulo 2³². */
export const STATISTIC = {
  /** Of a replica: one of `ROLES`, and how often it has begun to lead. */
  role: 0,
  timesLed: 1,
  /**
   * Of a replica: the deliveries that the state of its service contains, its own or those of a snapshot that it has
   * restored. Of a client slot: messages of all its clients that all destinations have answered.
   */
  messages: 2,
  /** Of a replica: snapshots that its service failed to take. */
  failedSnapshots: 3,
  /** Of a replica: 1 if its host has found that its group has lost its state for good (`lookout.ts`). */
  stateLost: 4,
  /** Of a replica: orderly ends of its host at which it could not leave its state. */
  unsavedEnds: 5,
  /** Of a replica: ordered time after the last tick that it has delivered, in two words; 0 before the first. */
  orderedMs: 6,
  /** By how much its host's clock was ahead of ordered time when it delivered that tick; negative: behind. */
  clockAheadMs: 8,
  /** Of a replica: messages that its group has ordered for groups below it, and not for itself. */
  relayed: 9,
  /** Of a replica, in two words each: see `ReplicaStatus`. */
  durable: 10,
  recoverable: 12,
  settled: 14,
  decided: 16,
  /** Of a replica: the words of its log, and of the fullest of its feeds, that were in use when it led last. */
  logUsedWords: 18,
  feedUsedWords: 19,
  words: 20,
} as const;

/** From a client's offer until the last destination has replied. */
export const STATISTICS_WORDS: number = STATISTIC.words + Histogram.words;

export function latencyOf(words: Int32Array, map: ArenaMap, participant: ParticipantId): Histogram {
  return new Histogram(words, map.statisticsOf(participant) + STATISTIC.words);
}
