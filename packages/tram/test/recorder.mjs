/**
 * A service for tests: keeps the texts that it is given and replies `NUMBER:TEXT`. Some texts are orders:
 * `throw`, `nothing` (no reply), `long` (too long a reply), `read` (all texts), `sleep MS`.
 */
let texts = [];

export function deliver({ payload }) {
  const text = new TextDecoder().decode(payload);
  if (text === 'throw') throw new Error('as it was told');
  if (text === 'nothing') return undefined;
  if (text === 'long') return new Uint8Array(100_000);
  if (text === 'read') return encode(texts.join());
  if (text.startsWith('sleep ')) sleep(Number(text.slice(6)));
  else texts.push(text);
  return encode(`${texts.length}:${text}`);
}

export function snapshot() {
  return encode(JSON.stringify(texts));
}

export function restore(snapshot) {
  texts = JSON.parse(new TextDecoder().decode(snapshot));
}

/** A service must not: it holds its whole host up. */
function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function encode(text) {
  return new TextEncoder().encode(text);
}
