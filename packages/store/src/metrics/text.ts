/** Metrics as Prometheus reads them, version 0.0.4 of its text format. */

export type Labels = Readonly<Record<string, string | number>>;

export interface Sample {
  /** Of the name: what a histogram consists of has one. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  readonly labels: Labels;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly samples: readonly Sample[];
}

export function metricsText(families: readonly Family[]): string {
  return families
    .map(({ name, kind, help, samples }) =>
      [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${kind}`,
        ...samples.map(
          ({ suffix = '', labels, value }) => `${name}${suffix}${labelsText(labels)} ${value}`,
        ),
      ].join('\n'),
    )
    .map((text) => `${text}\n`)
    .join('');
}

function labelsText(labels: Labels): string {
  const texts = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(String(value))}"`,
  );
  return texts.length === 0 ? '' : `{${texts.join()}}`;
}

/** Codes of errors come from scripts: they may have any characters. */
function escaped(text: string): string {
  return text.replace(/["\\\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
