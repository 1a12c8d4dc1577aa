/** A self-contained HTML page. */
import { escapeText } from '../figures/svg.js';
import type { Table } from './experiment.js';

/** Text that is already HTML. */
export interface Markup {
  readonly markup: string;
}

type Content = string | number | Markup | readonly Content[];

/** A template for HTML: contents are escaped, unless they are markup. */
export function raw(parts: TemplateStringsArray, ...contents: readonly Content[]): Markup {
  const filled = parts.map((part, i) => part + (i < contents.length ? render(contents[i]) : ''));
  return { markup: filled.join('') };
}

function render(content: Content): string {
  if (typeof content === 'number') return String(content);
  if (typeof content === 'string') return escapeText(content);
  return 'markup' in content ? content.markup : content.map(render).join('');
}

export function tableOf({ title, head, rows }: Table): Markup {
  const cells = (row: readonly string[]): Markup[] => row.map((cell) => raw`<td>${cell}</td>`);
  return raw`<table class="numbers"><caption>${title}</caption><thead><tr>${head.map(
    (name) => raw`<th>${name}</th>`,
  )}</tr></thead><tbody>${rows.map((row) => raw`<tr>${cells(row)}</tr>`)}</tbody></table>`;
}

export function page(title: string, body: readonly Markup[]): string {
  const { markup } = raw`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${{ markup: CSS }}</style>
</head>
<body>
<main>
${body.map((part) => raw`${part}\n`)}</main>
</body>
</html>
`;
  return markup;
}

const CSS = `
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.8rem; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 1px solid #ddd; }
h2 small { font-weight: 400; font-size: .9rem; color: #777; margin-left: .5rem; }
p, ul { max-width: 46rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; font-size: .92rem; }
dt { color: #777; }
dd { margin: 0; }
figure { margin: 1.2rem 0; }
figure svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: 1rem 0; }
caption { white-space: nowrap; text-align: left; color: #555; padding-bottom: .3rem; }
th { text-align: left; font-weight: 600; color: #555; }
th, td { padding: .35rem .9rem .35rem 0; border-bottom: 1px solid #e6e6e6; vertical-align: top; }
.findings { width: 100%; table-layout: fixed; }
.findings .open { color: #777; }
.agrees { color: #00694c; font-weight: 600; }
.differs { color: #a34700; font-weight: 600; }
.numbers { font-variant-numeric: tabular-nums; }
.note { border-left: 3px solid #e0b04a; padding-left: .8rem; color: #555; }
details { margin-top: 1rem; overflow-x: auto; }
summary { cursor: pointer; color: #0072b2; }
a { color: #0072b2; }
@media print { h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
`;
