/** Colours: only on a terminal, and not if NO_COLOR is set. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Color = keyof typeof CODES;

export function paint(color: Color, text: string): string {
  const plain = !process.stdout.isTTY || Boolean(process.env['NO_COLOR']);
  return plain ? text : `\u001b[${CODES[color]}m${text}\u001b[0m`;
}

/** `1 message`, `2,000 messages`. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;
}
