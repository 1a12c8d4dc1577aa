import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/config.js';
import { ClusterContext } from '../../src/hosting/cluster-context.js';
import { PARTICIPANT } from '../../src/memory/arena.js';
import { OPEN, RETIRED } from '../../src/memory/contract.js';
import { NO_SALT } from '../../src/memory/record.js';
import { beginIncarnation } from '../../src/memory/shared.js';
import { threadsArena } from '../../src/memory/threads.js';

function newContext(): ClusterContext {
  const config = resolveConfig({ groups: 1, replicas: 3 }, NO_SALT);
  const buffer = new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4);
  return ClusterContext.create(config, threadsArena(buffer));
}

function twoProcesses() {
  const context = newContext();
  for (const participant of [0, 1])
    beginIncarnation(context.arena, context.map, participant, false);
  return [context.memory(0), context.memory(1)] as const;
}

test('what has been polled leaves no trace, whatever it was', () => {
  const [writer, owner] = twoProcesses();
  owner.permit(7);
  const into = new Int32Array(4);
  const posts = [
    () => writer.read(1, 0, 4, into, 0, 1),
    () => writer.writeWord(1, 0, 5, OPEN, 2),
    () => writer.writeWord(1, 0, 5, 7, 3),
    () => writer.writeWord(1, 0, 5, 7, 0),
    () => writer.writeWord(1, 0, 5, 8, 0),
  ];
  const places = writer['posted']['tags'].length;
  for (let round = 0; round < 10 * places; round++) {
    // Each of them is now and then the last one before all is polled.
    for (let i = 0; i <= round % posts.length; i++) posts[i]();
    while (writer.poll());
  }
  expect(writer['posted']['tags']).toHaveLength(places);
});

test('completions come in the order of posting; of failures, also those nobody waits for', () => {
  const [writer, owner] = twoProcesses();
  owner.permit(7);
  writer.writeWord(1, 0, 1, 7, 1);
  writer.writeWord(1, 1, 2, 8, 0);
  writer.writeWord(1, 2, 3, 7, 0);
  writer.write(1, 3, Int32Array.of(4, 5), 0, 2, OPEN, 2);
  const seen: string[] = [];
  while (writer.poll()) seen.push(`${writer.completion.tag} ${writer.completion.outcome}`);
  expect(seen).toEqual(['1 ok', '0 refused', '2 ok']);
  expect([...owner.own.subarray(0, 5)]).toEqual([1, 2, 3, 4, 5]);
});

test('a write that is permitted is known to be ok at once, one that is not is reported as refused', () => {
  const [writer, owner] = twoProcesses();
  const words = Int32Array.from({ length: 60 }, (_, i) => i + 1);
  for (const count of [1, 2, 8, 24, 25, 60]) {
    owner.own.fill(0, 0, 64);
    owner.permit(7);
    expect(writer.writeAtOnce(1, 2, words, 0, count, 7, 1)).toBe(true);
    expect(writer.poll()).toBe(false);
    expect([...owner.own.subarray(2, 2 + count)]).toEqual([...words.subarray(0, count)]);
    expect([owner.own[1], owner.own[2 + count]]).toEqual([0, 0]);
    owner.permit(8);
    expect(writer.writeAtOnce(1, 2, words, 0, count, 7, 1)).toBe(false);
    expect(writer.poll()).toBe(true);
    expect(writer.completion).toEqual({ peer: 1, tag: 1, guard: 7, outcome: 'refused' });
    expect(writer.poll()).toBe(false);
  }
});

test('the last key that was permitted is known to all later incarnations', () => {
  const context = newContext();
  const { arena, map } = context;
  const begin = (resumes: boolean): number => {
    beginIncarnation(arena, map, 0, resumes);
    return arena.words[map.participant(0) + PARTICIPANT.lastKey];
  };
  expect(begin(false)).toBe(OPEN);
  context.memory(0).permit(7);
  expect(begin(true)).toBe(7);
  context.memory(0).permit(8);
  expect(begin(false)).toBe(8);
  expect(context.memory(0).permitted()).toBe(RETIRED);
  expect(begin(false)).toBe(8);
});
