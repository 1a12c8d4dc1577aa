/** Payloads and replies as the commands show them. */
import { describe, expect, test } from 'vitest';
import { readable, readableLine } from '../../src/cli/readable.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a payload', () => {
  test('is shown as text if it is some, in one line', () => {
    expect(readable(bytes('größer\n'))).toEqual({ text: 'größer\n' });
    expect(readableLine(bytes('a\tb\r\nc'))).toBe('a\\tb\\r\\nc');
    expect(readableLine(bytes(''))).toBe('(empty)');
  });

  test('is shown in hexadecimal if it could do something to the terminal, or is no text', () => {
    expect(readable(bytes('\u001b[2J'))).toEqual({ hex: '1b5b324a' });
    expect(readable(bytes('\u009b2J'))).toEqual({ hex: 'c29b324a' });
    expect(readable(bytes('a\u202eb'))).toEqual({ hex: '61e280ae62' });
    expect(readableLine(Uint8Array.of(0xff, 0x00))).toBe('0xff00');
  });
});
