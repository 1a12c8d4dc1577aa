/** INFO: which sections are wanted, and what has to be asked for them. */

import { type Bytes, Verbatim } from '../../resp/reply.js';
import type { Changing } from '../carriers.js';
import type { Gateway } from '../gateway.js';
import { type Answers, NO_ANSWERS, SECTIONS, type Section } from '../info-sections.js';

/** These words mean all sections, and those that are not left out of the usual ones. */
const ALL = ['all', 'everything'];
const USUAL = 'default';

export const INFO_HANDLERS: Readonly<Record<string, Changing>> = {
  info: (args, { gateway }) => {
    const wanted = wantedSections(args.length === 0 ? [USUAL] : args);
    return askFor(wanted, gateway).then(
      (answers) =>
        new Verbatim(
          wanted.map(([name, { fields }]) => printed(name, fields(gateway, answers))).join('\r\n'),
        ),
    );
  },
};

function wantedSections(args: readonly Bytes[]): [name: string, section: Section][] {
  const words = args.map((arg) => arg.toLowerCase());
  const isAll = ALL.some((word) => words.includes(word));
  return Object.entries(SECTIONS).filter(
    ([name, { isUsual = true }]) =>
      isAll || words.includes(name.toLowerCase()) || (isUsual && words.includes(USUAL)),
  );
}

async function askFor(
  sections: readonly [string, Section][],
  { reports, facts }: Gateway,
): Promise<Answers> {
  const isNeeded = (what: keyof Answers): boolean =>
    sections.some(([, { needs = [] }]) => needs.includes(what));
  const [shards, leaders, settings] = await Promise.all([
    isNeeded('shards') ? reports.ask() : NO_ANSWERS.shards,
    isNeeded('leaders') ? facts.lookAtShards() : NO_ANSWERS.leaders,
    isNeeded('settings') ? reports.askSettings() : undefined,
  ]);
  return { shards, leaders, settings };
}

function printed(name: string, fields: Readonly<Record<string, string | number>>): Bytes {
  const lines = Object.entries(fields).map(([field, value]) => `${field}:${value}\r\n`);
  return `# ${name}\r\n${lines.join('')}`;
}
