/** Reading traces: what is accepted, and the line and sentence with which the rest is refused. */

import { describe, expect, test } from 'vitest';
import { MalformedTraceError } from '../../src/check/events.js';
import { judge } from '../../src/check/judge.js';
import { parseTrace, readTrace } from '../../src/check/trace.js';

const GROUPS =
  '{"event":"groups","groups":{"0":["0/0","0/1"],"3":["3/0"]},"parents":[-1,0,0,0],"order":"multicast"}';
const MULTICAST =
  '{"event":"multicast","id":"c1:7","client":"c1","destinations":[0,3],"timeUs":12.5}';

const START = '{"event":"client-start","client":"c1","clock":"a machine"}';
const TO_ONE_GROUP =
  '{"event":"multicast","id":"c1:8","client":"c1","destinations":[3],"timeUs":12.5}';
const BEGINNING = [GROUPS, '', START, MULTICAST, TO_ONE_GROUP].join('\n');

const GOOD = [
  GROUPS,
  START,
  MULTICAST,
  '{"event":"leader","group":0,"replica":"0/1","ballot":"2.1"}',
  '{"event":"deliver","id":"c1:7","group":0,"replica":"0/1","note":"unknown fields are ignored"}',
  '{"event":"crash","replica":"0/0"}',
  '{"event":"restart","replica":"0/0"}',
  '{"event":"restore","replica":"0/0","from":"0/1","count":1}',
  '',
  '{"event":"touch","id":"c1:7","group":0}',
  '{"event":"deliver","id":"c1:7","group":3,"replica":"3/0"}',
  '{"event":"answered","id":"c1:7","group":3,"timeUs":12.5}',
  '{"event":"answered","id":"c1:7","group":0,"timeUs":13}',
  '{"event":"client-crash","client":"c1"}',
  '{"event":"end","quiescent":true}',
].join('\n');

test('every event is read', () => {
  const verdict = judge(parseTrace(GOOD));
  expect(verdict.outcome).toBe('holds');
  expect(verdict.counts).toEqual({
    groups: 2,
    replicas: 3,
    clients: 1,
    messages: 1,
    answers: 2,
    deliveries: 2,
    touches: 1,
    leaders: 1,
    crashes: 1,
    restarts: 1,
    restores: 1,
    clientCrashes: 1,
    eras: 1,
  });
});

test('it does not matter where chunks end', async () => {
  for (const size of [1, 2, 7, 64]) {
    const chunks = Array.from({ length: Math.ceil(GOOD.length / size) }, (_, i) =>
      GOOD.slice(i * size, (i + 1) * size),
    );
    expect(judge(await readTrace(chunks))).toEqual(judge(parseTrace(GOOD)));
  }
});

test('windows line ends and a last line break are fine, ids are any strings', () => {
  const text = `${GOOD.replaceAll('\n', '\r\n').replaceAll('c1:7', 'né "7"\\\\'.replaceAll('"', '\\"'))}\r\n`;
  expect(judge(parseTrace(text)).outcome).toBe('holds');
});

describe('a malformed line is refused with its number and a sentence', () => {
  const cases: [string, string, string][] = [
    ['bad JSON', '{"event":', 'this is not JSON'],
    ['no object', '[1]', 'this is not a JSON object'],
    ['no event', '{"id":"a"}', 'the field "event" is missing'],
    ['unknown event', '{"event":"delivered"}', 'unknown event "delivered"'],
    ['name of a prototype', '{"event":"constructor"}', 'unknown event "constructor"'],
    [
      'missing field',
      '{"event":"deliver","id":"c1:7","group":0}',
      'the field "replica" of a "deliver" event is missing',
    ],
    [
      'mistyped field',
      '{"event":"deliver","id":7,"group":0,"replica":"0/0"}',
      'the field "id" of a "deliver" event has the wrong type or value',
    ],
    [
      'negative count',
      '{"event":"restore","replica":"0/0","from":"0/1","count":-1}',
      'the field "count" of a "restore" event has the wrong type or value',
    ],
    ['second multicast', MULTICAST, 'message "c1:7" is multicast a second time'],
    [
      'no destination',
      '{"event":"multicast","id":"x","client":"c1","destinations":[]}',
      'message "x" has no destination',
    ],
    [
      'destination twice',
      '{"event":"multicast","id":"x","client":"c1","destinations":[0,0]}',
      'message "x" names destination 0 twice',
    ],
    [
      'unknown group',
      '{"event":"multicast","id":"x","client":"c1","destinations":[1]}',
      'there is no group 1',
    ],
    ['unknown replica', '{"event":"crash","replica":"9/9"}', 'there is no replica "9/9"'],
    [
      'wrong group',
      '{"event":"deliver","id":"c1:7","group":3,"replica":"0/0"}',
      'replica "0/0" is not in group 3',
    ],
    [
      'restore from another group',
      '{"event":"restore","replica":"0/0","from":"3/0","count":1}',
      '"0/0" restores from "3/0", which is in another group',
    ],
    [
      'an order that nobody promises',
      '{"event":"groups","groups":{"0":["0/0"]},"order":"total"}',
      'the field "order" of a "groups" event has the wrong type or value',
    ],
    [
      'a durability that nobody promises',
      '{"event":"era","era":1,"durability":"daily"}',
      'the field "durability" of a "era" event has the wrong type or value',
    ],
    [
      'answered before it is multicast',
      '{"event":"answered","id":"x","group":0}',
      'message "x" is answered before it is multicast',
    ],
    [
      'answered by a group that is no destination',
      '{"event":"answered","id":"c1:8","group":0,"timeUs":13}',
      'message "c1:8" is answered by group 0, which is no destination',
    ],
    [
      'only some events of a client with a time',
      '{"event":"answered","id":"c1:7","group":0}',
      'client "c1" has events with and without a time',
    ],
    [
      'a clock that goes back',
      '{"event":"answered","id":"c1:7","group":0,"timeUs":12.4}',
      'the clock of client "c1" goes back',
    ],
    [
      'second start of a client',
      '{"event":"client-start","client":"c1","clock":"another machine"}',
      'client "c1" starts a second time',
    ],
    ['second groups', GROUPS, 'there is a second "groups" event'],
  ];
  test.each(cases)('%s', (_, line, reason) => {
    expect(refusal(`${BEGINNING}\n${line}\n`)).toEqual({
      line: 6,
      reason,
      text: line,
    });
  });

  test('events before the groups', () => {
    expect(refusal('{"event":"crash","replica":"0/0"}')).toMatchObject({
      line: 1,
      reason: 'there is no replica "0/0" (a "groups" event must come first)',
    });
  });

  test('events after the end', () => {
    expect(refusal(`${GOOD}\n{"event":"crash","replica":"0/0"}`)).toMatchObject({
      line: 16,
      reason: 'nothing may follow the "end" event',
    });
  });

  test.each([
    ['[0,0]', 'group 0 does not reach a root'],
    ['[-1,7]', 'group 1 does not reach a root'],
    ['[-1,-1]', 'it needs exactly one root'],
    ['[-1]', 'group 1 is not in "parents"'],
  ])('parents that are no tree: %s', (parents, reason) => {
    const line = `{"event":"groups","groups":{"0":["a"],"1":["b"]},"parents":${parents}}`;
    expect(refusal(line).reason).toContain(reason);
  });
});

function refusal(text: string): { line: number; reason: string; text: string | undefined } {
  try {
    parseTrace(text);
  } catch (error) {
    if (!(error instanceof MalformedTraceError)) throw error;
    return { line: error.line, reason: error.reason, text: error.text };
  }
  throw new Error('the trace was accepted');
}
