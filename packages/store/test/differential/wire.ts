/** Replies as they were sent, in a form that can be compared and printed. A parser of its own: that of the store is what is tested. */

/** The type as RESP marks it, and what follows. Numbers stay texts, byte for byte. */
export type Wire = readonly [type: string, content: string | null | readonly Wire[]];

/** @returns undefined if the reply is not there as a whole */
export function parseWire(bytes: Buffer, from: number): { wire: Wire; end: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', from, 'latin1');
  if (lineEnd < 0) return undefined;
  const type = bytes.toString('latin1', from, from + 1);
  const line = bytes.toString('latin1', from + 1, lineEnd);
  const after = lineEnd + 2;
  if ('+-:_,#('.includes(type)) return { wire: [type, line], end: after };
  const length = Number(line);
  if (length < 0) return { wire: [type, null], end: after };
  if ('$='.includes(type)) {
    if (bytes.length < after + length + 2) return undefined;
    return {
      wire: [type, bytes.toString('latin1', after, after + length)],
      end: after + length + 2,
    };
  }
  if (!'*%~>'.includes(type)) throw new TypeError(`no type of RESP: ${JSON.stringify(type)}`);
  const items: Wire[] = [];
  let end = after;
  for (let left = type === '%' ? 2 * length : length; left > 0; left--) {
    const item = parseWire(bytes, end);
    if (item === undefined) return undefined;
    items.push(item.wire);
    end = item.end;
  }
  return { wire: [type, items], end };
}

/** A command or its reply on one line. */
export function show(wire: Wire | readonly string[]): string {
  return JSON.stringify(wire);
}

export function isError(wire: Wire): boolean {
  return wire[0] === '-';
}

export function itemsOf(wire: Wire): readonly Wire[] | undefined {
  return Array.isArray(wire[1]) ? (wire[1] as readonly Wire[]) : undefined;
}
