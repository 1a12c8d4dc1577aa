/** Shows payloads and replies: as text if they are printable text, else in hexadecimal. */

/** Control and invisible characters. Line breaks and tabs are allowed, and written as escapes. */
const UNPRINTABLE = /[^\P{C}\n\r\t]/u;

export type Readable = { readonly text: string } | { readonly hex: string };

export function readable(bytes: Uint8Array): Readable {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!UNPRINTABLE.test(text)) return { text };
  } catch {
    // Not UTF-8.
  }
  return { hex: Buffer.from(bytes).toString('hex') };
}

/** By group. */
export function readableReplies(
  replies: ReadonlyMap<number, Uint8Array>,
): Readonly<Record<string, Readable>> {
  return Object.fromEntries([...replies].map(([group, reply]) => [group, readable(reply)]));
}

/** In one line. */
export function readableLine(bytes: Uint8Array): string {
  if (bytes.length === 0) return '(empty)';
  const content = readable(bytes);
  if ('hex' in content) return `0x${content.hex}`;
  return content.text.replace(/[\n\r\t]/g, (character) => JSON.stringify(character).slice(1, -1));
}
