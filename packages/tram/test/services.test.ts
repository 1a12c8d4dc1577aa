/** What services do wrong, on threads and on processes: it costs a message or the start, never a host. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type Client,
  Cluster,
  decode,
  encode,
  keeping,
  pause,
  ReplyError,
  type StartOptions,
  until,
} from './built.js';

const entry = new URL('../dist/index.js', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'tram-services-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The path of a file with this text. */
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Evaluates the payload, as the service of a group. */
const EVALUATOR = file(
  'evaluator.mjs',
  `export function deliver({ payload }, { group }) {
    const reply = new Function('group', new TextDecoder().decode(payload))(group);
    return reply;
  }`,
);

test('a cluster whose service has no ticks orders nothing while it is idle', async () => {
  const cluster = await Cluster.start({ groups: 3, hosts: 3, service: EVALUATOR });
  await pause(300);
  const replicas = cluster.status().groups.flatMap((group) => group.replicas);
  expect(replicas.map(({ delivered, nowMs }) => delivered + nowMs)).toEqual(replicas.map(() => 0));
  await cluster.close();
});

describe.each(['threads', 'processes'] as const)('on %s', (memory) => {
  const OPTIONS = { groups: 3, hosts: 3, memory, replyBytesMax: 200 } as const;

  async function errorOfStart(service: string, rest: Partial<StartOptions> = {}): Promise<unknown> {
    const cluster = Cluster.start({ ...OPTIONS, service, ...rest });
    return cluster.then(
      (started) => started.destroy(),
      (error: unknown) => error,
    );
  }

  describe('while it runs', () => {
    const { logger, errors } = keeping();
    let cluster: Cluster;
    let client: Client;

    beforeAll(async () => {
      cluster = await Cluster.start({ ...OPTIONS, service: EVALUATOR, logger });
      client = await cluster.connect();
    });

    afterEach(async () => {
      errors.length = 0;
      const replies = await client.multicast([0, 1, 2], encode("return Buffer.from('goes on')"));
      expect([...replies.values()].map(decode)).toEqual(['goes on', 'goes on', 'goes on']);
      expect(cluster.status().hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
    });

    afterAll(() => cluster.close());

    async function failureOf(program: string, groups = [0]): Promise<ReplyError> {
      const outcome = await client.multicast(groups, encode(program)).catch((error) => error);
      expect(outcome).toBeInstanceOf(ReplyError);
      return outcome;
    }

    test.each([
      ["return 'hello'", 'and it returned a string'],
      ['return 5', 'and it returned a number'],
      ['return null', 'and it returned null'],
      ['return (async () => new Uint8Array(1))()', 'it must not be asynchronous'],
      ["return Promise.reject(new Error('later'))", 'it must not be asynchronous'],
    ])('a wrong result fails the message: %s', async (program, why) => {
      const { code, retry, failedGroups } = await failureOf(program);
      expect({ code, retry }).toEqual({ code: 'TRAM_SERVICE_FAILED', retry: 'unsafe' });
      expect(failedGroups.get(0)).toMatch(
        /^deliver\(\) must return a Uint8Array, context\.defer\(\) or nothing, /,
      );
      expect(failedGroups.get(0)).toContain(why);
    });

    test.each([
      ["throw new RangeError('none left')", 'none left'],
      ['throw new RangeError()', 'RangeError'],
      ["throw 'none left'", 'none left'],
      ['throw undefined', 'undefined'],
      ['throw Object.create(null)', ''],
      [`throw new Error('ü'.repeat(1000))`, 'ü'.repeat(100)],
      [`throw new Error('x' + 'ü'.repeat(1000))`, `x${'ü'.repeat(99)}`],
    ])('the error says what was thrown: %s', async (program, text) => {
      const { message, failedGroups, replies } = await failureOf(program);
      expect([...failedGroups]).toEqual([[0, text]]);
      expect([...replies]).toEqual([]);
      expect(message).toBe(
        `the message was delivered, but group 0 failed${text === '' ? '' : `: ${text}`}`,
      );
    });

    test('the log has what was thrown, with the frames of the service only', async () => {
      const report = (): string | undefined => errors.find((text) => text.includes('for the log'));
      // Reports are rate-limited, so the first ones may be suppressed.
      while (report() === undefined) {
        await failureOf("throw new Error('for the log')");
        await pause(50);
      }
      expect(report()).toMatch(/^the service threw at g0\/\d: Error: for the log\n +at /);
      expect(report()).toContain('evaluator.mjs');
      expect(report()).not.toContain('/dist/');
    });

    test('the error has the replies of the other groups', async () => {
      const error = await failureOf(
        `if (group === 1) throw new Error('none left');
         return new Uint8Array(group === 2 ? 201 : 1);`,
        [0, 1, 2],
      );
      expect(error.code).toBe('TRAM_SERVICE_FAILED');
      expect([...error.replies]).toEqual([[0, new Uint8Array(1)]]);
      expect([...error.failedGroups].sort()).toEqual([
        [1, 'none left'],
        [2, 'a reply of 201 bytes exceeds replyBytesMax (200)'],
      ]);
      expect(error.message).toContain('group 1 failed: none left');
      expect(error.message).toContain('group 2 failed: a reply of 201 bytes');
    });

    test('a reply that is too large is not a failure of the service', async () => {
      const error = await failureOf('return new Uint8Array(group === 2 ? 5000 : 1)', [1, 2]);
      expect(error).toMatchObject({ code: 'TRAM_REPLY_TOO_LARGE', retry: 'unsafe' });
      expect([...error.replies.keys()]).toEqual([1]);
      expect([...error.failedGroups]).toEqual([
        [2, 'a reply of 5000 bytes exceeds replyBytesMax (200)'],
      ]);
    });

    test.each([
      [
        'a promise that rejects',
        "void Promise.reject(new Error('stray 1'))",
        'Error: stray 1\n    at ',
      ],
      [
        'a promise that rejects later',
        "void (async () => { await 0; throw new Error('stray 2'); })()",
        'Error: stray 2\n    at ',
      ],
      ['a promise that rejects with text', "void Promise.reject('stray 3')", 'stray 3'],
      [
        'a timer that throws',
        "setTimeout(() => { throw new Error('stray 4'); }, 1)",
        'Error: stray 4\n    at ',
      ],
    ])('%s ends no host, and is reported', async (_, program, text) => {
      const isReported = (): boolean => errors.some((error) => error.includes(text));
      // Reports are rate-limited, so the first ones may be suppressed.
      while (!isReported()) {
        await client.multicast([0, 1, 2], encode(program));
        await pause(50);
      }
      const report = errors.find((error) => error.includes(text));
      expect(report).toMatch(/^the service failed outside of its functions: /);
    });
  });

  test('ordered time goes on across leader changes, and is the same at all replicas', async () => {
    const service = file(
      'clock.mjs',
      `let count = 0, lastMs = 0;
       export const ticks = { everyMs: 5 };
       export function tick({ nowMs }) {
         if (nowMs < lastMs) throw new Error('time goes back');
         lastMs = nowMs;
         if (++count === 3) throw new Error('the third tick');
       }
       export const deliver = (_, { nowMs }) => Buffer.from(JSON.stringify({ count, lastMs, nowMs }));
       export const snapshot = () => Buffer.from(JSON.stringify({ count, lastMs }));
       export const restore = (bytes) => void ({ count, lastMs } = JSON.parse(Buffer.from(bytes)));`,
    );
    const { logger, errors } = keeping();
    const trace = join(folder, `trace-${memory}`);
    const cluster = await Cluster.start({ ...OPTIONS, service, logger, trace });
    const client = await cluster.connect();
    const read = async (): Promise<{ count: number; lastMs: number; nowMs: number }> => {
      const replies = await client.multicast([0], encode('now'));
      return JSON.parse(decode(replies.get(0))!);
    };
    let seen = await read();
    const goesOn = async (): Promise<void> => {
      const { count } = seen;
      while (seen.count < count + 5) {
        const next = await read();
        expect(next.nowMs).toBeGreaterThanOrEqual(seen.nowMs);
        expect(next.nowMs).toBe(next.lastMs);
        seen = next;
      }
    };
    await goesOn();
    for (const member of [1, 2, 0]) {
      while (cluster.status().groups[0].leader !== member) {
        cluster.lead(0, member);
        await pause(20);
      }
      await goesOn();
    }
    await cluster.crash(0);
    await goesOn();
    await cluster.restart(0, { fresh: true });
    await goesOn();
    // Every replica has come at least so far, by itself.
    const { nowMs } = seen;
    await until(() => cluster.status().groups[0].replicas.every((one) => one.nowMs >= nowMs));
    expect(Math.abs(nowMs - Date.now())).toBeLessThan(3_600_000);
    expect(errors.filter((text) => text.includes('time goes back'))).toEqual([]);
    // It fails everywhere, and costs nothing else.
    await until(() => errors.some((text) => text.includes('the third tick')));
    // Ticks are no messages.
    const deliveries = cluster.deliveries({ group: 0 });
    await goesOn();
    const { value } = await deliveries.next();
    expect(decode(value!.payload)).toBe('now');
    await client.close();
    await cluster.close();
    // All messages were delivered at the end, although time went on.
    const history = readdirSync(trace).map((name) => readFileSync(join(trace, name), 'utf8'));
    expect(history.join('')).toContain('"quiescent":true');
  });

  describe('a module that Node loads once for all replicas of a host', () => {
    const COUNTER = 'let n = 0; exports.deliver = () => Buffer.from([++n]);';
    const counter = file('counter.cjs', COUNTER);
    file('shared.mjs', 'let n = 0; export const deliver = () => Buffer.from([++n]);');

    test.each([
      ['in CommonJS', counter],
      ['in CommonJS, as one object', file('object.cjs', `${COUNTER} module.exports = exports;`)],
      [
        'that exports deliver of another',
        file('again.mjs', "export { deliver } from './shared.mjs';"),
      ],
      [
        'whose default export is that of another',
        file('default.mjs', "import { deliver } from './shared.mjs'; export default { deliver };"),
      ],
    ])('is refused: %s', async (_, service) => {
      expect(await errorOfStart(service)).toMatchObject({
        code: 'TRAM_SERVICE_INVALID',
        message: expect.stringContaining('would share its state'),
        hint: expect.stringContaining('"type": "module"'),
      });
    });

    test('may hold the class of a service, of which each replica makes an instance', async () => {
      file(
        'class.mjs',
        'export class Counter { n = 0; deliver() { return Buffer.from([++this.n]); } }',
      );
      const service = file(
        'instance.mjs',
        "import { Counter } from './class.mjs'; export default new Counter();",
      );
      expect(await countsOf(service, new Uint8Array(1), ([n]) => n)).toEqual([1, 2, 1]);
    });

    test('may hold a typed service, also one that is compiled to CommonJS', async () => {
      const service = file(
        'typed.cjs',
        `Object.defineProperty(exports, '__esModule', { value: true });
         const { defineService } = require(${JSON.stringify(fileURLToPath(entry))});
         exports.default = defineService({
           initial: () => ({ n: 0 }),
           deliver: (state) => ++state.n,
         });`,
      );
      expect(await countsOf(service, encode('{}'), (reply) => Number(decode(reply)))).toEqual([
        1, 2, 1,
      ]);
    });

    /** What a counter replies at group 0 twice, then at group 1. */
    async function countsOf(
      service: string,
      payload: Uint8Array,
      count: (reply: Uint8Array) => number,
    ): Promise<number[]> {
      const cluster = await Cluster.start({ ...OPTIONS, service });
      const client = await cluster.connect();
      const counts: number[] = [];
      for (const group of [0, 0, 1]) {
        const replies = await client.multicast([group], payload);
        counts.push(count(replies.get(group)!));
      }
      await cluster.close();
      return counts;
    }
  });

  describe('at the start, with file and line,', () => {
    const BROKEN = 'import "node:fs";\n\nexport function deliver( {\n  return;\n';
    const broken = file('broken.mjs', BROKEN);
    const url = (name: string): string => pathToFileURL(join(folder, name)).href;

    test.each([
      ['does not parse', broken, `SyntaxError: Unexpected token ';' (${url('broken.mjs')}:4)`],
      [
        'imports what does not parse',
        file('deep.mjs', "import './broken.mjs';\nexport const deliver = () => undefined;"),
        `SyntaxError: Unexpected token ';' (${url('broken.mjs')}:4)`,
      ],
      [
        'imports a name that is not there',
        file('name.mjs', "\nimport { nothing } from 'node:fs';\nexport const deliver = nothing;"),
        `does not provide an export named 'nothing' (${url('name.mjs')}:2)`,
      ],
      [
        'throws',
        file('throws.mjs', "export const deliver = 1;\nthrow new Error('no licence');"),
        `Error: no licence (${url('throws.mjs')}:2:7)`,
      ],
      [
        'imports a missing file',
        file('imports.mjs', "import './gone.mjs';"),
        `Cannot find module '${join(folder, 'gone.mjs')}' imported from ${join(folder, 'imports.mjs')}`,
      ],
      [
        'imports a missing package',
        file('package.mjs', "import 'gone-for-good';"),
        `Cannot find package 'gone-for-good' imported from ${join(folder, 'package.mjs')}`,
      ],
    ])('a service that %s is invalid', async (_, service, message) => {
      const error = await errorOfStart(service);
      expect(error).toMatchObject({
        code: 'TRAM_SERVICE_INVALID',
        retry: 'useless',
        message: expect.stringContaining(message),
        cause: { name: expect.stringMatching(/Error$/), stack: expect.stringContaining('    at ') },
      });
    });

    test('a service that is missing is invalid', async () => {
      expect(await errorOfStart(join(folder, 'gone.mjs'))).toMatchObject({
        code: 'TRAM_SERVICE_INVALID',
        message: `can't load the service ${url('gone.mjs')}: there is no such file`,
        hint: expect.stringContaining('working directory'),
      });
    });

    test('a service in TypeScript must be compiled', async () => {
      // An enum is more than a type: no version of Node can leave it out.
      const source = 'enum Kind { one }\nexport const deliver = (): Kind => Kind.one;';
      expect(await errorOfStart(file('service.ts', source))).toMatchObject({
        code: 'TRAM_SERVICE_INVALID',
        hint: expect.stringContaining('npx tsc'),
      });
    });

    test('a service whose first state has no snapshot is invalid', async () => {
      const source = `export const deliver = () => undefined, restore = () => undefined;
        export function snapshot() { throw new Error('disk full'); }`;
      const service = file('snapshot.mjs', source);
      expect(await errorOfStart(service)).toMatchObject({
        code: 'TRAM_SERVICE_INVALID',
        message: `the service ${url('snapshot.mjs')} can't take a snapshot of its first state: Error: disk full`,
        cause: { message: 'disk full', stack: expect.stringContaining('snapshot.mjs') },
      });
    });
  });

  test('a module that starts a promise which rejects runs all the same', async () => {
    const errors: string[] = [];
    const error = (text: string): void => void errors.push(text);
    const cluster = await Cluster.start({
      ...OPTIONS,
      groups: 1,
      service: file(
        'stray.mjs',
        "export const deliver = () => undefined; Promise.reject('stray');",
      ),
      logger: { info: () => undefined, warn: () => undefined, error },
    });
    const client = await cluster.connect();
    await client.multicast([0], new Uint8Array(1));
    await until(() => errors.length > 0);
    await cluster.close();
    expect(errors[0]).toBe('the service failed outside of its functions: stray');
  });
});
