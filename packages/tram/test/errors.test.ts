/** Codes, types and docs/errors.md say the same, and the document's example does what it claims. */

import { readFileSync } from 'node:fs';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { ConfigError } from '../src/config/mistakes.js';
import { ERRORS, type ErrorCode, ReplyError, TramError } from '../src/errors.js';

const text = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
const codes = Object.keys(ERRORS) as ErrorCode[];

describe('the document', () => {
  test.each(codes)('explains %s', (code) => {
    const { meaning, retry, whatToDo } = ERRORS[code];
    expect(text).toContain(`| \`${code}\` | ${meaning} | ${retry} | ${whatToDo} |`);
  });

  test('explains each code once, in the order of the table, and no other', () => {
    const explained = [...text.matchAll(/^\| `(TRAM_\w+)` \|/gm)].map(([, code]) => code);
    expect(explained).toEqual(codes);
  });

  test('mentions no code that does not exist', () => {
    for (const [code] of text.matchAll(/\bTRAM_\w+/g)) expect(codes).toContain(code);
  });
});

describe('an error', () => {
  test('has the table’s retry unless told otherwise', () => {
    expect(new TramError('TRAM_TIMEOUT', 'late').retry).toBe('safe');
    expect(new TramError('TRAM_OUTCOME_UNKNOWN', 'late').retry).toBe('unsafe');
    expect(new TramError('TRAM_CLOSED', 'closed').retry).toBe('useless');
    expect(new TramError('TRAM_CLOSED', 'closed', { retry: 'safe' }).retry).toBe('safe');
  });

  test('has a hint and a cause only if it was given one', () => {
    const cause = new Error('below');
    const error = new TramError('TRAM_SYSTEM', 'above', { hint: 'Look there.', cause });
    expect(error).toMatchObject({ hint: 'Look there.', cause });
    const bare = new TramError('TRAM_SYSTEM', 'above');
    expect(bare.hint).toBeUndefined();
    expect(Object.hasOwn(bare, 'cause')).toBe(false);
  });

  test('is an Error that prints under its own name', () => {
    const error = new TramError('TRAM_CLOSED', 'the client is closed');
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toBe('TramError: the client is closed');
    expect(error.stack).toMatch(/^TramError: the client is closed\n/);
  });

  test('of a class of its own prints under the name of that class', () => {
    const replies = new Map<number, Uint8Array>();
    expect(String(new ReplyError('TRAM_OUTCOME_UNKNOWN', 'timeout', { replies }))).toBe(
      'ReplyError: timeout',
    );
    expect(String(new ConfigError(['groups'], 'too many'))).toBe('ConfigError: too many');
  });

  test('has a code of the table, also to the compiler', () => {
    expectTypeOf<TramError['code']>().toEqualTypeOf<keyof typeof ERRORS>();
    // @ts-expect-error: a code that does not exist
    expect(() => new TramError('TRAM_NO_SUCH_CODE', 'never')).toThrow();
  });
});

describe('the example', () => {
  interface Client {
    multicast(groups: number[], command: object): Promise<string>;
  }
  type MulticastOnce = (client: Client, groups: number[], order: object) => Promise<string>;

  const [, code] = /```js\n([\s\S]*?)```/.exec(text)!;
  const body = code.replace(/^import .*$/m, '').replace('export ', '');
  const multicastOnce: MulticastOnce = new Function('TramError', `${body}; return multicastOnce;`)(
    TramError,
  );

  /** Fails with these codes, one a call, then answers. */
  function failingClient(...failures: ErrorCode[]): Client & { readonly commands: string[] } {
    const commands: string[] = [];
    return {
      commands,
      async multicast(_, command) {
        commands.push(JSON.stringify(command));
        const failure = failures.shift();
        if (failure !== undefined) throw new TramError(failure, 'as planned');
        return 'answer';
      },
    };
  }

  test('sends again under the same id if the outcome is unknown, or nothing was sent', async () => {
    const client = failingClient('TRAM_OUTCOME_UNKNOWN', 'TRAM_TIMEOUT');
    expect(await multicastOnce(client, [1], { item: 'tea' })).toBe('answer');
    expect(client.commands).toHaveLength(3);
    expect(new Set(client.commands).size).toBe(1);
    expect(JSON.parse(client.commands[0])).toEqual({ id: expect.any(String), item: 'tea' });
  });

  test.each(['TRAM_SERVICE_FAILED', 'TRAM_CLOSED', 'TRAM_PAYLOAD_TOO_LARGE'] as const)(
    'does not send again after %s',
    async (failure) => {
      const client = failingClient(failure);
      await expect(multicastOnce(client, [1], {})).rejects.toMatchObject({ code: failure });
      expect(client.commands).toHaveLength(1);
    },
  );

  test('gives up in the end', async () => {
    const client = failingClient(...Array<ErrorCode>(9).fill('TRAM_OUTCOME_UNKNOWN'));
    await expect(multicastOnce(client, [1], {})).rejects.toThrow('as planned');
    expect(client.commands).toHaveLength(5);
  });
});
