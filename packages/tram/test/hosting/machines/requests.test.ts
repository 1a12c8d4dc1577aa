import { beforeEach, expect, test } from 'vitest';
import { type HostRequest, Requests, requestWord } from '../../../src/hosting/machines/requests.js';
import { type ArenaMap, HOST } from '../../../src/memory/arena.js';

const LINE = 16;
const map = { host: (host: number) => host * LINE } as ArenaMap;
const AT = LINE + HOST.request;

let words: Int32Array;
let obeyed: HostRequest[];

beforeEach(() => {
  words = new Int32Array(new SharedArrayBuffer(4 * 3 * LINE));
  obeyed = [];
});

function start(): Requests {
  return new Requests(words, map, 1, (request) => obeyed.push(request));
}

function ask(request: HostRequest): void {
  words[AT] = requestWord(words[AT], request);
}

const ASKED = ['recover', 'restart', 'stop', 'restart-fresh', 'forget', 'kill'] as const;

test.each(ASKED)('%s is obeyed once, by every start', (request) => {
  for (let starts = 0; starts < 2; starts++) {
    const host = start();
    ask(request);
    host.doWork();
    host.doWork();
  }
  expect(obeyed).toEqual([request, request]);
});

test('of several requests the one that ends more counts', () => {
  const host = start();
  for (const request of [...ASKED, ...ASKED]) {
    ask(request);
    host.doWork();
  }
  expect(obeyed).toEqual(ASKED);
});

test('a request to an earlier start is not obeyed', () => {
  ask('kill');
  const host = start();
  host.doWork();
  expect(obeyed).toEqual([]);
});

test('a request to another host is not obeyed', () => {
  const host = start();
  words[2 * LINE + HOST.request] = requestWord(0, 'kill');
  host.doWork();
  expect(obeyed).toEqual([]);
});

test('a word that asks for nothing is not obeyed', () => {
  const host = start();
  for (const word of [8, 8 + 7]) {
    words[AT] = word;
    host.doWork();
  }
  expect(obeyed).toEqual([]);
});

test('the count of requests wraps', () => {
  words[AT] = 0x7fffffff;
  const host = start();
  ask('stop');
  host.doWork();
  expect(obeyed).toEqual(['stop']);
});
