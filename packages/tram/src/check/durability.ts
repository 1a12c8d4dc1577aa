/**
 * Durability: what a power cut of the whole cluster may undo. Two promises, of which an era may give one or both:
 * - `always`: what replies have shown is not undone. A reply shows its message and everything that its group has delivered
 *   before. All of this is in the group's order in the end, at the same places, and the message is in the orders of its
 *   other destinations too.
 * - `always` and `everySecond`: a message of an earlier era is in the order of all its destinations, or of none.
 *
 * Only a drained run can be judged: in any other, a destination may still have to deliver its part, or the last lines of
 * a trace may be lost.
 */

import { type GroupOrder, replicaHolding } from './group-order.js';
import type { History } from './history.js';
import type { Violation } from './properties.js';

export function findDurabilityViolation(
  history: History,
  orders: readonly GroupOrder[],
): Violation | undefined {
  const places = new Places(history, orders);
  return (
    findLostAnswer(history, places) ??
    findUndoneAnswer(history, orders) ??
    findHalfMessage(history, places)
  );
}

/** Which messages are in the order of each of their destinations. */
class Places {
  /** How many destinations have the message. */
  readonly holders: Int32Array;
  private readonly orders: ReadonlySet<number>[] = [];

  constructor(
    private readonly history: History,
    private readonly groups: readonly GroupOrder[],
  ) {
    this.holders = new Int32Array(history.messageCount);
    for (const { order } of groups) for (const message of order) this.holders[message]++;
  }

  isComplete(message: number): boolean {
    return this.holders[message] === this.history.destinationsOf(message).length;
  }

  /** A destination that has the message, or that lacks it. Requires that there is one. Takes long: for witnesses. */
  find(message: number, isHolder: boolean): number {
    return this.history.destinationsOf(message).find((group) => {
      this.orders[group] ??= new Set(this.groups[group].order);
      return this.orders[group].has(message) === isHolder;
    })!;
  }
}

function isPromised(history: History, message: number): boolean {
  return history.durabilities[history.eraOfClient[history.clientOf(message)]] === 'always';
}

function findLostAnswer(history: History, places: Places): Violation | undefined {
  const answers = history.answers.view();
  for (let i = 0; i < answers.length; i += 2) {
    const [message, group] = [answers[i], answers[i + 1]];
    if (!isPromised(history, message) || places.isComplete(message)) continue;
    return {
      property: 'durability',
      kind: 'lost',
      message: history.messageIds[message],
      client: history.clientNames[history.clientOf(message)],
      answeredBy: history.groupNumbers[group],
      missingIn: history.groupNumbers[places.find(message, false)],
    };
  }
  return undefined;
}

/** An answered message that its group has kept, but behind other deliveries than before. */
function findUndoneAnswer(history: History, orders: readonly GroupOrder[]): Violation | undefined {
  let answeredIn: ReadonlySet<number>[] | undefined;
  for (const group of orders) {
    for (const { from, messages } of group.formerEnds) {
      const { order } = group;
      let kept = 0;
      while (kept < messages.length && messages[kept] === order[from + kept]) kept++;
      if (kept === messages.length) continue;
      answeredIn ??= answersByGroup(history);
      const replied = answeredIn[group.group];
      const answered = messages.subarray(kept).find((message) => replied.has(message));
      if (answered === undefined) continue;
      const index = from + kept;
      return {
        property: 'durability',
        kind: 'undone',
        message: history.messageIds[answered],
        client: history.clientNames[history.clientOf(answered)],
        group: history.groupNumbers[group.group],
        index,
        before: history.messageIds[messages[kept]],
        ...(index < order.length && {
          after: history.messageIds[order[index]],
          replica: history.replicaNames[replicaHolding(group, index)],
        }),
      };
    }
  }
  return undefined;
}

/** For each group, the messages whose replies it has promised to keep. */
function answersByGroup(history: History): ReadonlySet<number>[] {
  const answers = history.answers.view();
  const sets = history.groupNumbers.map(() => new Set<number>());
  for (let i = 0; i < answers.length; i += 2) {
    if (isPromised(history, answers[i])) sets[answers[i + 1]].add(answers[i]);
  }
  return sets;
}

function findHalfMessage(history: History, places: Places): Violation | undefined {
  for (const message of history.multicasts.view()) {
    const era = history.eraOfClient[history.clientOf(message)];
    const isEarlier = era < history.lastEra && history.durabilities[era] !== 'none';
    if (!isEarlier || places.holders[message] === 0 || places.isComplete(message)) continue;
    return {
      property: 'durability',
      kind: 'half',
      message: history.messageIds[message],
      keptBy: history.groupNumbers[places.find(message, true)],
      missingIn: history.groupNumbers[places.find(message, false)],
    };
  }
  return undefined;
}
