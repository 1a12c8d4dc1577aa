/** Elements of an SVG picture, as text. */

export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** One element. @param children  already rendered */
export function element(
  name: string,
  attributes: Attributes,
  ...children: readonly string[]
): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${escapeText(short(value!))}"`)
    .join('');
  return children.length === 0
    ? `<${name}${written}/>`
    : `<${name}${written}>${children.join('')}</${name}>`;
}

export function text(
  content: string,
  x: number,
  y: number,
  className: string,
  more: Attributes = {},
): string {
  return element('text', { x, y, class: className, ...more }, escapeText(content));
}

export function line(
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  className: string,
  more: Attributes = {},
): string {
  return element('line', { x1, y1, x2, y2, class: className, ...more });
}

export function group(attributes: Attributes, ...children: readonly string[]): string {
  return element('g', attributes, '', ...children);
}

export function escapeText(content: string): string {
  return content
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

/** Rounds to a tenth of a pixel. */
function short(value: string | number): string {
  return typeof value === 'string' ? value : String(Math.round(value * 10) / 10);
}

/** The approximate width of a text in pixels; no font metrics are available. */
export function widthOf(content: string, fontPixels: number): number {
  return content.length * fontPixels * 0.55;
}

/** Breaks a text into lines of at most the given width, between words. */
export function wrap(content: string, width: number, fontPixels: number): string[] {
  const lines: string[] = [];
  for (const word of content.split(' ')) {
    const last = lines.at(-1);
    const longer = `${last} ${word}`;
    if (last !== undefined && widthOf(longer, fontPixels) <= width)
      lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
